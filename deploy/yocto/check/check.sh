#!/bin/sh
# What can be checked of the Yocto layer without a build.
#
# usage: check.sh VENV
set -eu
venv=$(cd "${1:?usage: check.sh VENV}" && pwd)
cd "$(dirname "$0")/.."
repository=$(cd ../.. && pwd)
layer=meta-bellbird

# 1. Shell, and units as systemd sees them.
for f in source.sh check/*.sh $layer/recipes-bellbird/bellbird-system/files/tryboot $layer/recipes-bellbird/bellbird-system/files/grow \
	$layer/recipes-bellbird/bellbird-system/files/settings; do
	sh -n "$f"
done
if command -v systemd-analyze >/dev/null; then
	units=$(mktemp -d)
	trap 'rm -rf "$units"' EXIT
	for f in $layer/recipes-bellbird/bellbird-system/files/*.service; do
		sed 's#^\(Exec[A-Za-z]*\)=[^ ]*#\1=/bin/true#' "$f" >"$units/$(basename "$f")"
	done
	for f in "$units"/*; do
		said=$(SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no "$f" 2>&1) || { echo "$said" >&2; exit 1; }
		[ -z "$said" ] || { echo "check: $(basename "$f"): $said" >&2; exit 1; }
	done
	echo "units: no complaints"
else
	echo "units: SKIPPED, there is no systemd-analyze here"
fi
check/test-tryboot.sh
check/test-rauc.sh
check/test-grow.sh

# 2. The kas file, and the partitions.
"$venv/bin/python" check/kasfile.py kas-bellbird.yml
"$venv/bin/python" check/layout.py $layer

# 3. The linter. Not asked for: a home page of this project and whether those of others can be reached now; that classes have
# no anonymous functions, which is how a recipe is refused; licences of recipes that only have files of this repository.
find $layer -name '*.bb' -o -name '*.bbappend' -o -name '*.bbclass' -o -name '*.inc' -o -name '*.conf' -path '*/conf/*' | sort |
	xargs "$venv/bin/oelint-adv" --quiet --hide info --release scarthgap --constantmods +check/oelint.json \
		--suppress oelint.var.mandatoryvar.HOMEPAGE --suppress oelint.vars.homepageping \
		--suppress oelint.task.noanonpython --suppress oelint.var.licenseremotefile
echo "oelint-adv: no complaints"

# 4. BitBake's parser, and what the recipes install.
PYTHONPATH=check PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" check/parse.py "$repository" "$repository/build/yocto/parse"
