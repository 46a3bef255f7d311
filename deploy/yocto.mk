# The Yocto layer: the archive that it builds from, and what can be checked without a build. The Makefile includes this.

.PHONY: vendor-tarball check-yocto

vendor-tarball: setup-test
	deploy/yocto/source.sh build/yocto/source

check-yocto: build/yocto/venv/.done
	deploy/yocto/check/check.sh build/yocto/venv

build/yocto/venv/.done: deploy/yocto/check/requirements.txt | setup-test
	rm -rf build/yocto/venv
	python3 -m venv build/yocto/venv
	build/yocto/venv/bin/pip install --quiet --disable-pip-version-check -r deploy/yocto/check/requirements.txt
	touch $@
