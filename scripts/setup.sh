#!/usr/bin/env bash
# Installs what Plait needs and builds its C parts.  Safe to repeat: each step is skipped when its result is there.
#
#   scripts/setup.sh          everything that `make demo` and `make test` need
#   scripts/setup.sh shell    the separate environment of p4runtime-shell (its protobuf pin fits no other package)
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*" >&2; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

[ "$(uname -s)" = Linux ] || die "Plait needs Linux (namespaces, XDP); this is $(uname -s)."
[ "$(id -u)" = 0 ] || die "Plait needs root, for network namespaces and XDP; run it with sudo."
. /etc/os-release 2>/dev/null || die "cannot read /etc/os-release to tell which system this is."
case "${ID:-}:${VERSION_ID:-}" in
  debian:12 | ubuntu:24.04) ;;
  *) [ -n "${PLAIT_ANY_SYSTEM:-}" ] ||
       die "tested on Debian 12 and Ubuntu 24.04 only, and this is ${PRETTY_NAME:-unknown}; set PLAIT_ANY_SYSTEM=1 to try anyway." ;;
esac

# The distribution's Python: its bcc and mininet modules are built for no other.
python=/usr/bin/python3

apt_packages=(gcc libc6-dev make zlib1g-dev python3-dev python3-venv python3-bpfcc mininet iproute2 ethtool tcpdump
              iputils-ping)

install_apt() {
  export DEBIAN_FRONTEND=noninteractive
  apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 && return
  apt-get update -qq >/dev/null
  apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# Built files are stamped with a digest of what they were made from.
stamp_is() { [ "$(cat "$1" 2>/dev/null)" = "$2" ]; }

system_packages() {
  local missing=()
  for package in "${apt_packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  say "installing system packages: ${missing[*]}"
  install_apt "${missing[@]}" || die "apt could not install: ${missing[*]}"
}

# BCC compiles against kernel headers at /lib/modules/RELEASE/build. Where the running kernel has none in the
# distribution, the distribution's own serve: the XDP program uses no structure that differs between them.
kernel_headers() {
  local modules headers
  modules=/lib/modules/$(uname -r)
  [ -e "$modules/build/Makefile" ] && return
  say "installing kernel headers for BCC"
  install_apt "linux-headers-$(uname -r)" 2>/dev/null && [ -e "$modules/build/Makefile" ] && return
  if [ "$ID" = debian ]; then install_apt "linux-headers-$(dpkg --print-architecture)"; else install_apt linux-headers-generic; fi ||
    die "apt has no kernel headers, and BCC needs them."
  headers=$(find /usr/src -maxdepth 1 -name "linux-headers-*-$(dpkg --print-architecture)" -o -maxdepth 1 -name 'linux-headers-*-generic' |
    sort -V | tail -n 1)
  [ -n "$headers" ] || die "kernel headers were installed but are not under /usr/src."
  mkdir -p "$modules"
  ln -sfn "$headers" "$modules/build"
  ln -sfn "${headers/-$(dpkg --print-architecture)/-common}" "$modules/source"
  [ -e "$modules/source" ] || ln -sfn "$headers" "$modules/source"
  say "no headers for kernel $(uname -r): BCC uses $headers"
}

# Quiet unless it fails: what pip warns of is about packages that are not ours.
pip_install() {
  local environment=$1
  shift
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check "$@" >"$environment/pip.log" 2>&1 ||
    die "pip could not install into $environment: $(tail -n 5 "$environment/pip.log")"
}

python_environment() {
  local want
  want=$(cat pyproject.toml scripts/constraints.txt | sha256sum | cut -d' ' -f1)
  stamp_is .venv/.stamp "$want" && return
  say "making the Python environment .venv"
  [ -x .venv/bin/python ] || "$python" -m venv --system-site-packages .venv
  pip_install .venv -c scripts/constraints.txt -e '.[test]'
  echo "$want" >.venv/.stamp
}

shell_environment() {
  local want
  want=$(sha256sum scripts/constraints-shell.txt | cut -d' ' -f1)
  stamp_is .venv-shell/.stamp "$want" && return
  say "making p4runtime-shell's own environment .venv-shell"
  [ -x .venv-shell/bin/python ] || "$python" -m venv .venv-shell
  pip_install .venv-shell -r scripts/constraints-shell.txt
  echo "$want" >.venv-shell/.stamp
}

if [ "${1:-}" = shell ]; then
  shell_environment
  exit
fi
system_packages
kernel_headers
python_environment
.venv/bin/python scripts/build.py
