#!/bin/sh
# Sets up .venv from the lock and runs the study or the tests: sh run.sh study | test | lab | setup
set -eu
cd "$(dirname "$0")"
task=${1:-study}
python=${PYTHON:-}
for candidate in $python python3.11 python3.12 python3.13 python3; do
  if command -v "$candidate" >/dev/null 2>&1 &&
     "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$candidate; break; fi
done
[ -n "$python" ] || { echo "run.sh: Python 3.11 or newer is needed; set PYTHON to its path" >&2; exit 1; }

mark=.venv/.installed
want=$(cat requirements.lock pyproject.toml | cksum)
if [ ! -f "$mark" ] || [ "$(cat "$mark")" != "$want" ]; then
  echo "run.sh: installing pinned packages into .venv (once)" >&2
  [ -x .venv/bin/python ] || "$python" -m venv .venv
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
  echo "$want" > "$mark"
fi
# Kernels start from .venv whatever kernels the machine offers.
export JUPYTER_PREFER_ENV_PATH=1 PATH="$PWD/.venv/bin:$PATH"
case $task in
  setup) ;;
  study) shift $(( $# > 0 )); exec .venv/bin/tbstudy run configs/laptop.yaml "$@" ;;
  test)  shift; exec .venv/bin/python -m pytest "$@" ;;
  lab)   shift; exec .venv/bin/jupyter lab notebooks "$@" ;;
  *) echo "run.sh: unknown task '$task'; tasks are study, test, lab, setup" >&2; exit 2 ;;
esac
