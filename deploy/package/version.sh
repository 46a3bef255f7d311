#!/bin/sh
# The version of the commit, as Debian orders versions: that of a tag v1.2.3 is 1.2.3, four commits later it is
# 1.2.3+4.gABC, and before the first tag it is the commit's time.
set -eu
if v=$(git describe --tags --match 'v[0-9]*' --dirty=+dirty 2>/dev/null); then
	echo "${v#v}" | sed 's/-\([0-9]*\)-g\([0-9a-f]*\)/+\1.g\2/; s/-rc/~rc/'
	exit
fi
dirty=
[ -z "$(git status --porcelain --untracked-files=no)" ] || dirty=+dirty
echo "0~$(TZ=UTC git log -1 --date=format-local:%Y%m%d%H%M%S --format=%cd).g$(git rev-parse --short=8 HEAD)$dirty"
