#!/bin/sh
# Makes the key with which a publisher signs manifests, and a manifest for a bundle. Put the manifest and the bundle next to
# each other on a web server, the bundle first: devices whose [ota] names the manifest's address and the key will take it.
#
# usage: publish.sh key KEY
#            makes KEY, unless it is there, and prints the public key for public_key in [ota]
#        publish.sh manifest KEY BUNDLE MANIFEST CHANNEL VERSION COMPATIBLE [TITLE [MINIMUM-VERSION [NOTES-URL]]]
set -eu
fail() { echo "publish: $*" >&2; exit 1; }
usage() { sed -n '5,7s/^# //p' "$0" >&2; exit 2; }
command -v openssl >/dev/null || fail "openssl is missing: apt-get install openssl"

# As text in JSON.
quote() {
	printf '%s' "$1" | LC_ALL=C grep -q '[[:cntrl:]]' && fail "there are characters in \"$1\" that can't be printed"
	printf '"%s"' "$(printf '%s' "$1" | sed 's/[\\"]/\\&/g')"
}

case ${1-} in
key)
	[ $# = 2 ] || usage
	if [ ! -e "$2" ]; then
		(umask 077 && openssl genpkey -algorithm ed25519 -out "$2")
		echo "publish: $2 is new. Keep it where nobody else can read it, and a copy: devices believe no other." >&2
	fi
	openssl pkey -in "$2" -pubout -outform DER | tail -c 32 | base64 # after 12 bytes that say that it is ed25519
	;;
manifest)
	[ $# -ge 7 ] || usage
	key=$2 bundle=$3 manifest=$4
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	{
		printf '{\n\t"channel": %s,\n\t"version": %s,\n\t"compatible": %s,\n' "$(quote "$5")" "$(quote "$6")" "$(quote "$7")"
		printf '\t"url": %s,\n\t"size": %s,\n\t"sha256": "%s"' \
			"$(quote "$(basename "$bundle")")" "$(stat -L -c %s "$bundle")" "$(sha256sum <"$bundle" | cut -d ' ' -f 1)"
		[ -z "${8-}" ] || printf ',\n\t"title": %s' "$(quote "$8")"
		[ -z "${9-}" ] || printf ',\n\t"minimum_version": %s' "$(quote "$9")"
		[ -z "${10-}" ] || printf ',\n\t"notes_url": %s' "$(quote "${10}")"
		printf '\n}\n'
	} >"$tmp/json"
	openssl pkeyutl -sign -inkey "$key" -rawin -in "$tmp/json" -out "$tmp/signature"
	{
		printf 'bellbird-update 1 %s\n' "$(base64 -w 0 "$tmp/signature")"
		cat "$tmp/json"
	} >"$tmp/manifest"
	mv "$tmp/manifest" "$manifest"
	;;
*) usage ;;
esac
