# The speech engines beside the Wyoming servers that people use, faster-whisper and Piper, with a real model and a real
# voice. They are large, so it isn't a part of "make test". The Makefile includes this.

.PHONY: test-wyoming

# What is found is kept in build/wyoming: test.log, and the servers' whisper.log and piper.log.
test-wyoming: setup-test
	mkdir -p build/wyoming
	deploy/wyoming/run.sh go test -count=1 -v -timeout 10m ./wyoming/compare >build/wyoming/test.log 2>&1; \
		status=$$?; cat build/wyoming/test.log; exit $$status
