#!/bin/sh
# Puts the echo canceller beside speexdsp's and webrtc-audio-processing's. The peers are Debian's packages, unpacked below
# build/ and not installed; they are never linked into the appliance. Arguments are passed on to the program.
set -eu
cd "$(dirname "$0")/../../.."
dest=build/echo-peers
source=audio/echo/compare/peers
packages="libspeexdsp-dev libspeexdsp1 libwebrtc-audio-processing-dev libwebrtc-audio-processing1"
if [ ! -e "$dest/.fetched" ]; then
	rm -rf "$dest"
	mkdir -p "$dest"
	# shellcheck disable=SC2086 # a list
	(cd "$dest" && apt-get -qq -o APT::Sandbox::User=root download $packages)
	for deb in "$dest"/*.deb; do
		dpkg-deb -x "$deb" "$dest"
		rm "$deb"
	done
	touch "$dest/.fetched"
fi
include=$dest/usr/include
lib=$(echo "$dest"/usr/lib/*-linux-gnu)
cc -O2 -o "$dest/speex" -I"$include" "$source/speex.c" "$lib/libspeexdsp.a" -lm
c++ -O2 -std=c++11 -o "$dest/webrtc" -DWEBRTC_AUDIO_PROCESSING_ONLY_BUILD -DWEBRTC_POSIX \
	-I"$include/webrtc_audio_processing" "$source/webrtc.cc" -L"$lib" -lwebrtc_audio_processing -Wl,-rpath,"$PWD/$lib"
exec go run ./audio/echo/compare -peers "$dest" "$@"
