# Verbs only; what each does is in scripts/ and in the `plait` command.
.DEFAULT_GOAL := help
PLAIT := .venv/bin/plait

.PHONY: help setup demo test lint bench wire clean distclean

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install and build everything (quick when it is already there)
	@scripts/setup.sh

demo: setup ## a fat-tree of P4 switches carries RDMA WRITEs between XDP hosts
	@$(PLAIT) demo $(ARGS)

test: setup ## lint, types, and every test
	@scripts/test.sh $(ARGS)

lint: setup ## ruff and mypy only
	@scripts/lint.sh

bench: setup ## speed of the switch and of the NIC
	@$(PLAIT) bench switch
	@$(PLAIT) bench nic

wire: setup ## regenerate wire/ from p4src/include
	@.venv/bin/python -m wire.generate

clean: ## remove what a killed run left on the machine
	@$(PLAIT) clean

distclean: clean ## also remove the environment, built files and results
	@rm -rf .venv .venv-shell out *.egg-info */_build */*/_build
