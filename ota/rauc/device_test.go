package rauc_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bellbird/ota/rauc"
)

// A device is the real RAUC on a bus of its own, with files for slots, and the boot loader of deploy/rauc.
type device struct {
	dir    string
	rauc   *exec.Cmd
	log    bytes.Buffer
	booted string
}

const (
	board     = "bellbird-test"
	imageSize = 4 << 20
)

func newDevice(t testing.TB) *device {
	t.Helper()
	for _, program := range []string{"rauc", "dbus-daemon", "openssl", "mksquashfs"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed: apt-get install rauc rauc-service dbus openssl squashfs-tools", program)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("RAUC mounts bundles, which needs root")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skip("RAUC mounts bundles, which needs loop devices")
	}
	d := &device{dir: t.TempDir()}
	backend, err := filepath.Abs("../../deploy/rauc/boot-backend")
	if err != nil {
		t.Fatal(err)
	}
	for _, slot := range []string{"a", "b"} {
		d.write(t, slot, nil)
		if err := os.Truncate(filepath.Join(d.dir, slot), 2*imageSize); err != nil {
			t.Fatal(err)
		}
	}
	d.key(t, "ca")
	d.key(t, "stranger")
	d.write(t, "boot", fmt.Appendf(nil, "#!/bin/sh\nBELLBIRD_BOOT=%s/slots exec %s \"$@\"\n", d.dir, backend))
	if err := os.Chmod(filepath.Join(d.dir, "boot"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.write(t, "system.conf", []byte(strings.NewReplacer("BOARD", board, "DIR", d.dir).Replace(systemConf)))
	d.write(t, "bus.conf", []byte(strings.ReplaceAll(busConf, "DIR", d.dir)))
	d.bus(t)
	d.start(t)
	t.Cleanup(func() {
		d.stop()
		if t.Failed() {
			t.Logf("RAUC's log:\n%s", d.log.Bytes())
		}
	})
	return d
}

const systemConf = `[system]
compatible=BOARD
bootloader=custom
bundle-formats=plain verity
statusfile=DIR/status
mountprefix=DIR/mnt
[keyring]
path=DIR/ca.pem
[handlers]
bootloader-custom-backend=DIR/boot
[slot.rootfs.0]
device=DIR/a
bootname=A
[slot.rootfs.1]
device=DIR/b
bootname=B
`

const busConf = `<busconfig>
<type>custom</type><listen>unix:path=DIR/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy>
</busconfig>
`

func (d *device) slots() rauc.Slots { return rauc.Slots{Address: "unix:path=" + d.dir + "/bus"} }

func (d *device) write(t testing.TB, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (d *device) command(t testing.TB, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = d.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// key makes a key and a certificate.
func (d *device) key(t testing.TB, name string) {
	d.command(t, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
		"-keyout", name+".key", "-out", name+".pem", "-subj", "/O=Bellbird/CN="+name)
}

func (d *device) bus(t testing.TB) {
	cmd := exec.Command("dbus-daemon", "--config-file="+filepath.Join(d.dir, "bus.conf"), "--nofork", "--print-address")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if n, err := out.Read(make([]byte, 256)); n == 0 {
		t.Fatalf("dbus-daemon: %v", err) // it prints its address when it listens
	}
}

// boot restarts the device: RAUC is told which slot the boot loader has taken.
func (d *device) boot(t *testing.T) { d.start(t) }

func (d *device) start(t testing.TB) {
	t.Helper()
	d.stop()
	d.booted = strings.TrimSpace(d.command(t, filepath.Join(d.dir, "boot"), "next"))
	d.rauc = exec.Command("rauc", "--conf="+filepath.Join(d.dir, "system.conf"), "--override-boot-slot="+d.booted, "service")
	d.rauc.Env = append(os.Environ(), "DBUS_SYSTEM_BUS_ADDRESS=unix:path="+d.dir+"/bus")
	d.rauc.Stdout, d.rauc.Stderr = io.Discard, &d.log
	if err := d.rauc.Start(); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var err error
	for range 500 {
		if _, err = d.slots().Compatible(t.Context()); err == nil {
			return
		}
		<-tick.C
	}
	t.Fatalf("RAUC doesn't answer: %v\n%s", err, d.log.Bytes())
}

func (d *device) stop() {
	if d.rauc != nil {
		d.rauc.Process.Kill()
		d.rauc.Wait()
		d.rauc = nil
	}
}

// bundle makes a bundle with an image in it.
func (d *device) bundle(t *testing.T, compatible, version string, signed bool) string {
	return d.make(t, t.TempDir(), compatible, version, signed)
}

func (d *device) make(t testing.TB, dir, compatible, version string, signed bool) string {
	t.Helper()
	in, key := filepath.Join(dir, "in"), "ca"
	if !signed {
		key = "stranger"
	}
	if err := os.Mkdir(in, 0o700); err != nil {
		t.Fatal(err)
	}
	// Something that can't be compressed, and that tells versions apart.
	image := make([]byte, imageSize)
	random := rand.NewChaCha8(sha256.Sum256([]byte(version)))
	random.Read(image)
	copy(image, version+"\n")
	for name, text := range map[string][]byte{
		"root.img":       image,
		"manifest.raucm": fmt.Appendf(nil, "[update]\ncompatible=%s\nversion=%s\n[bundle]\nformat=plain\n[image.rootfs]\nfilename=root.img\n", compatible, version),
	} {
		if err := os.WriteFile(filepath.Join(in, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "update.raucb")
	d.command(t, "rauc", "--cert="+key+".pem", "--key="+key+".key", "bundle", in, path)
	return path
}
