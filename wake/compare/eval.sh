#!/bin/sh
# Measures the wake word models on the recordings of the test data, one table for each word and condition, and plots to
# build/wake-eval. Usage: wake/compare/eval.sh [DATA [FLAGS of bellbird wake eval]]
set -eu
cd "$(dirname "$0")/../.."
data=${1:-../shared/data}
[ $# -eq 0 ] || shift
speech=$data/speech
[ -d "$speech/wake" ] || { echo "eval.sh: no recordings in $speech/wake: name the directory of the data" >&2; exit 2; }
mkdir -p build/wake-eval

# measure WORD EXCEPT POSITIVE...: everything that isn't a positive or excepted is a negative.
measure() {
	word=$1 except=$2
	shift 2
	positives=
	for p in "$@"; do
		positives="$positives --positive $p"
	done
	# shellcheck disable=SC2086 # none of the paths has spaces
	build/bellbird wake eval --models "$data/models/microwakeword,models" --words "$word" $positives \
		--negative "$speech" $except --noise "$speech/noise" --svg "build/wake-eval/$word.svg" $flags
	echo
}

flags=$*
tests=$speech/wake/reference_tests
measure alexa "" "$speech/wake/alexa" "$tests"/alexa_*.flac
measure computer "" "$speech/wake/computer" "$tests"/computer_*.flac "$speech"/wake/precise_community/*computer_*.flac
# "jarvis" alone is neither a call nor something that should be held against the model.
measure hey_jarvis "--except $speech/wake/jarvis" "$tests"/hey_jarvis_*.flac
measure okay_nabu "" "$tests"/okay_nabu_*.flac
