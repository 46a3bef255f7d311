#!/bin/sh
# Runs compare.py, or openwakeword.py if that is the first argument (without ".py"), with the peers at fixed versions, in
# an environment of its own below build/.
set -eu
cd "$(dirname "$0")/../.."
program=compare
if [ "${1-}" = openwakeword ]; then
	program=$1
	shift
fi
venv=build/venv-compare
if [ ! -e "$venv/ready" ] || [ wake/compare/requirements.txt -nt "$venv/ready" ]; then
	python3 -m venv "$venv"
	"$venv/bin/pip" install --quiet --disable-pip-version-check -r wake/compare/requirements.txt
	touch "$venv/ready"
fi
exec "$venv/bin/python" "wake/compare/$program.py" "$@"
