#!/bin/sh
# Sets up .venv from the lock and runs the study or the tests: sh run.sh study | test | test-verl | lab | setup
set -eu
cd "$(dirname "$0")"
task=${1:-study}
python=${PYTHON:-}
for candidate in $python python3.11 python3.12 python3.13 python3; do
  if command -v "$candidate" >/dev/null 2>&1 &&
     "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$candidate; break; fi
done
[ -n "$python" ] || { echo "run.sh: Python 3.11 or newer is needed; set PYTHON to its path" >&2; exit 1; }

# The launcher's tests against the real verl want an environment of their own (2 GB, not part of the laptop study).
if [ "$task" = test-verl ]; then
  shift
  if [ ! -f .venv-verl/.installed ]; then
    echo "run.sh: installing verl into .venv-verl (once)" >&2
    [ -x .venv-verl/bin/python ] || "$python" -m venv .venv-verl
    # pip 23 does not find a solution of verl's requirements in reasonable time.
    .venv-verl/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
    .venv-verl/bin/python -m pip install --quiet torch==2.13.0
    .venv-verl/bin/python -m pip install --quiet -e '.[verl,test]'
    touch .venv-verl/.installed
  fi
  exec .venv-verl/bin/python -m pytest tests/training/with_verl -m "not slow" "$@"
fi

mark=.venv/.installed
want=$(cat requirements.lock pyproject.toml | cksum)
if [ ! -f "$mark" ] || [ "$(cat "$mark")" != "$want" ]; then
  echo "run.sh: installing pinned packages into .venv (once, about 2 GB, some minutes without a word)" >&2
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
  *) echo "run.sh: unknown task '$task'; tasks are study, test, test-verl, lab, setup" >&2; exit 2 ;;
esac
