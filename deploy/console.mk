# The console in a real browser, Chromium without a window. It is large, so it isn't a part of "make test": without it
# these tests are skipped there. The Makefile includes this.

.PHONY: test-console setup-console

# What the tests saw is kept in build/console. They print how many bytes the first load takes, when everything can be used,
# and what the page takes when it has been open for long; it stays open for another CONSOLE_OPEN.
CONSOLE_OPEN ?= 3m

test-console: setup-test models setup-console
	BELLBIRD_BROWSER=1 BELLBIRD_PAGE=$(CONSOLE_OPEN) go test -count=1 -v -timeout 90m -run 'TestConsole$$' ./cmd/appliance
	BELLBIRD_BROWSER=1 go test -count=1 -v ./console

setup-console: setup-test
	@if ! { command -v chromium && command -v chromedriver; } >/dev/null 2>&1; then \
		root=; [ "$$(id -u)" = 0 ] || root=sudo; echo "setup: installing chromium chromium-driver" >&2; \
		log=$$(mktemp); { $$root apt-get update -q && $$root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends chromium chromium-driver; } >$$log 2>&1 || \
			{ tail -n 5 $$log >&2; echo "setup: apt-get could not install chromium and chromium-driver: see the lines above, and try again" >&2; exit 1; }; rm -f $$log; \
	fi
