# The appliance and Home Assistant itself. It takes minutes, and the first time many of them, so it isn't a part of
# "make test". The Makefile includes this.

.PHONY: test-ha setup-ha

# What is found is kept in build/ha: home-assistant.log, entities.txt, and appliance.log.
test-ha: setup-test models setup-ha
	BELLBIRD_HA=$(CURDIR) go test -count=1 -v -timeout 15m -run 'TestHomeAssistant|TestTwoSpeakers' ./cmd/appliance

setup-ha: setup-test
	deploy/ha/setup.sh
