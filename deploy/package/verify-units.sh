#!/bin/sh
# Has systemd look at the units: they must be without a complaint, and the exposure that it computes must be low.
set -eu
cd "$(dirname "$0")/../systemd"
rauc=../rauc
command -v systemd-analyze >/dev/null || { echo "verify-units: SKIPPED, there is no systemd-analyze here" >&2; exit 0; }

# Their programs needn't be installed.
units=$(mktemp -d)
trap 'rm -rf "$units"' EXIT
for f in *.service *.timer $rauc/*.service $rauc/*.timer $rauc/*.path; do
	sed 's#^\(Exec[A-Za-z]*\)=[^ ]*#\1=/bin/true#' "$f" >"$units/$(basename "$f")"
done
for f in "$units"/*; do
	said=$(SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no "$f" 2>&1) || { echo "$said" >&2; exit 1; }
	[ -z "$said" ] || { echo "verify-units: $(basename "$f"): $said" >&2; exit 1; }
done

# The exposure is told in tenths. The check of the storage mounts, repairs and gives away: it can't have less.
while read -r unit limit; do
	said=$(systemd-analyze security --no-pager --offline=true --threshold="$limit" "$units/$unit" 2>&1) || {
		echo "$said" >&2
		echo "verify-units: $unit is more exposed than $limit tenths" >&2
		exit 1
	}
	echo "$said" | sed -n 's/.*Overall/Overall/p'
done <<LIMITS
bellbird.service 20
bellbird-clock.service 20
bellbird-clock-save.service 20
bellbird-data.service 40
bellbird-restart.service 20
bellbird-trial.service 20
rauc-hawkbit-updater.service 25
LIMITS
[ "$(ls "$units"/*.service | wc -l)" = 7 ] || { echo "verify-units: a service has no limit in this script" >&2; exit 1; }

said=$(systemd-sysusers --dry-run "$PWD/bellbird.sysusers" 2>&1) || { echo "$said" >&2; exit 1; }
case $said in *ignoring*) echo "verify-units: bellbird.sysusers: $said" >&2; exit 1 ;; esac
echo "verify-units: no complaints"
