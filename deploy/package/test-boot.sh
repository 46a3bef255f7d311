#!/bin/sh
# Boots a small Debian with systemd in a container, and runs the package in it with its hardening on, on a sound card that
# hears silence: it starts, answers, is watched, restarted and upgraded. Needs root and systemd-nspawn; test-install.sh
# makes the Debian. The hardware isn't there, and how much memory may be used is for the machine's kernel to limit.
#
# usage: test-boot.sh DEB
set -eu
deb=$(realpath "$1")
cd "$(dirname "$0")/../.."
base=build/debian-base.tar
[ "$(id -u)" = 0 ] && command -v systemd-nspawn >/dev/null && [ -f "$base" ] || {
	echo "test-boot: SKIPPED, it needs root, systemd-nspawn, and what test-install.sh makes" >&2
	exit 0
}

fail() {
	echo "test-boot: $*" >&2
	in_it systemctl status --no-pager -n 0 bellbird >&2 || true
	in_it journalctl -u bellbird --no-pager >"$root/journal" || true
	grep -E ' systemd\[1\]:| level=' "$root/journal" | tail -n 40 >&2
	exit 1
}
step() { echo "test-boot: $*"; }
in_it() { nsenter -t "$init" -a env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C "$@"; }
# until SECONDS WHAT COMMAND... waits for the command to succeed.
until_true() {
	limit=$1 what=$2
	shift 2
	while ! "$@" >/dev/null 2>&1; do
		limit=$((limit - 1))
		[ "$limit" -gt 0 ] || fail "$what: not in time"
		sleep 1
	done
}
show() { in_it systemctl show -P "$1" "${2:-bellbird.service}"; }
is() { [ "$(show "$1")" = "$2" ]; }

root=$(mktemp -d)
nspawn=
stop() {
	[ -z "$nspawn" ] || { kill "$nspawn" 2>/dev/null || true; wait "$nspawn" 2>/dev/null || true; }
	rm -rf --one-file-system "$root"
}
trap stop EXIT
tar -C "$root" -xf "$base"
chmod 755 "$root" # mktemp made the one that the base came from
cp "$deb" "$root/bellbird.deb"

# Without the capability to set this machine's clock. The container's own filter doesn't know Landlock.
systemd-nspawn -q --register=no --keep-unit --system-call-filter='landlock_create_ruleset landlock_add_rule landlock_restrict_self' --boot -D "$root" --console=pipe </dev/null >/dev/null 2>&1 &
nspawn=$!
limit=60
until init=$(pgrep -P "$nspawn" systemd) && in_it systemctl is-system-running --wait >/dev/null 2>&1; do
	limit=$((limit - 1))
	[ "$limit" -gt 0 ] || { echo "test-boot: the container doesn't start" >&2; exit 1; }
	sleep 1
done

step "install"
in_it mkdir -p /etc/bellbird
printf '[sound]\nbackend = "null"\n' | in_it tee /etc/bellbird/config.toml >/dev/null
in_it env DEBIAN_FRONTEND=noninteractive dpkg -i --force-confold /bellbird.deb >"$root/log" 2>&1 || { cat "$root/log" >&2; fail "dpkg"; }
until_true 60 "it becomes active" is ActiveState active
until_true 30 "its status" is StatusText 'idle, the microphone is deaf (constant)' # it hears nothing but silence
echo "test-boot: $(show StatusText), $(show Result), memory $(show MemoryCurrent)"
[ "$(show ActiveState bellbird-data.service)" = active ] || fail "bellbird-data: $(show Result bellbird-data.service)"
pid=$(show MainPID)
in_it grep -E '^(NoNewPrivs|Seccomp|CapBnd|CapEff|CapAmb|Groups|Threads|VmRSS):' "/proc/$pid/status"
in_it prlimit -p "$pid" -o RESOURCE,SOFT,HARD --rtprio --rttime --core --noheadings
see() { in_it nsenter -t "$pid" -m setpriv --reuid bellbird --regid bellbird --clear-groups sh -c "$1"; }
see 'touch /var/lib/bellbird/x && rm /var/lib/bellbird/x' || fail "it can't write its state"
! see 'touch /usr/x || touch /etc/bellbird/x || ls /boot || ls /etc/bellbird/credentials || ls /root' >/dev/null 2>&1 || fail "it sees more than it should"

step "it answers, and speaks"
answer=$(in_it bellbird ask "what time is it") || fail "ask"
echo "test-boot: $answer"

step "a plugin in a worker, with its whole sandbox"
in_it su -s /bin/sh bellbird -c 'cd /tmp && bellbird plugin new shout >/dev/null && cp -r shout /var/lib/bellbird/plugins/ && bellbird plugin consent shout --yes --allow-unsigned >/dev/null' || fail "plugin new"
in_it bellbird plugin list
until_true 30 "a worker" in_it sh -c 'grep -aqs plugin-worke[r] /proc/[0-9]*/cmdline'
in_it bellbird ask "what time is it" >/dev/null || fail "ask, with a plugin"
in_it journalctl -u bellbird --no-pager -o cat | grep "sandbox lacks" || true # what this machine's kernel lacks
! in_it journalctl -u bellbird --no-pager -o cat | grep "sandbox lacks" | grep "not permitted" || fail "the service takes a part of its sandbox away from the worker"

step "a key"
printf 'secret\n' | in_it sh -c 'umask 077; cat >/etc/bellbird/credentials/openai'
in_it systemctl restart bellbird || fail "restart"
[ "$(in_it nsenter -t "$(show MainPID)" -m cat /run/credentials/bellbird.service/key_openai)" = secret ] || fail "the key is not there"

step "one that ends is started again"
pid=$(show MainPID)
in_it systemctl kill --kill-who=main -s KILL bellbird
until_true 60 "a new one" sh -c "! [ \"\$(nsenter -t $init -a systemctl show -P MainPID bellbird)\" = $pid ] && [ \"\$(nsenter -t $init -a systemctl show -P ActiveState bellbird)\" = active ]"

step "one whose sound stands still is started again by the watchdog"
pid=$(show MainPID)
in_it systemctl kill --kill-who=main -s STOP bellbird
until_true 60 "the watchdog" sh -c "nsenter -t $init -a journalctl -u bellbird --no-pager -o cat | grep -q 'Watchdog timeout'"
until_true 60 "a new one" is ActiveState active

step "one that crashes is started again"
pid=$(show MainPID)
in_it systemctl kill --kill-who=main -s QUIT bellbird # as a Go program crashes
until_true 60 "the end" sh -c "! [ \"\$(nsenter -t $init -a systemctl show -P MainPID bellbird)\" = $pid ]"
until_true 60 "a new one" is ActiveState active

step "upgrade"
pid=$(show MainPID)
in_it env DEBIAN_FRONTEND=noninteractive dpkg -i --force-confold /bellbird.deb >"$root/log" 2>&1 || { cat "$root/log" >&2; fail "dpkg"; }
until_true 60 "the new one" is ActiveState active
[ "$(show MainPID)" != "$pid" ] || fail "the old one still runs"

step "a configuration with a mistake stops it, and it stays stopped"
in_it sh -c 'echo "volumme = 3" >>/etc/bellbird/config.toml'
in_it systemctl restart bellbird 2>/dev/null || true
until_true 30 "it fails" is ActiveState failed
sleep 5 # longer than RestartSec
is ActiveState failed && [ "$(show ExecMainStatus)" = 2 ] || fail "it is $(show ActiveState), exit code $(show ExecMainStatus)"
in_it sed -i '/volumme/d' /etc/bellbird/config.toml
in_it systemctl start bellbird || fail "start"

step "stop"
in_it systemctl stop bellbird
is Result success || fail "it ended with $(show Result), exit code $(show ExecMainStatus)"
in_it systemctl start bellbird-clock-save || fail "bellbird-clock-save"
in_it test -f /var/lib/bellbird/clock || fail "the time was not kept"

step "purge"
in_it env DEBIAN_FRONTEND=noninteractive dpkg -P bellbird >"$root/log" 2>&1 || { cat "$root/log" >&2; fail "dpkg -P"; }
in_it sh -c '! ls -d /var/lib/bellbird /etc/bellbird /run/bellbird 2>/dev/null' || fail "something is left"
[ "$(show LoadState)" = not-found ] || fail "the service is still there"
echo "test-boot: passed"
