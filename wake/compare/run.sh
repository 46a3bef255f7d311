#!/bin/sh
# Runs compare.py with the peers at fixed versions, in an environment of its own below build/.
set -eu
cd "$(dirname "$0")/../.."
venv=build/venv-compare
if [ ! -e "$venv/ready" ]; then
	python3 -m venv "$venv"
	"$venv/bin/pip" install --quiet --disable-pip-version-check -r wake/compare/requirements.txt
	touch "$venv/ready"
fi
exec "$venv/bin/python" wake/compare/compare.py "$@"
