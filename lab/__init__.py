"""The laboratory: experiments on an emulated fabric, their results, and the `plait` command."""
