// Package malgotest is a sound card for tests: a PulseAudio server of the test's own, without hardware. What is played to
// its sink "mic" is heard by the default microphone, and the default loudspeaker can be recorded from "speaker.monitor".
package malgotest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"bellbird/audio/malgo"
)

// Pulse starts the server, makes it that of this process, and stops it at the end of the test. It skips the test where
// there is no PulseAudio.
func Pulse(t *testing.T) {
	t.Helper()
	for _, program := range []string{"pulseaudio", "paplay", "parec"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	t.Setenv("HOME", dir)
	t.Setenv("PULSE_SERVER", "unix:"+dir+"/pulse.sock")
	config := filepath.Join(dir, "config.pa")
	err := os.WriteFile(config, []byte(fmt.Sprintf(`
load-module module-native-protocol-unix socket=%s/pulse.sock auth-anonymous=1
load-module module-null-sink sink_name=mic sink_properties=device.description=MicSink
load-module module-null-sink sink_name=speaker sink_properties=device.description=Speaker
load-module module-remap-source source_name=ears master=mic.monitor source_properties=device.description=Microphone
set-default-sink speaker
set-default-source ears
`, dir)), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("pulseaudio", "-n", "-F", config, "--daemonize=no", "--exit-idle-time=-1", "--disable-shm=yes", "--use-pid-file=no")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 500 {
		<-tick.C
		if _, err := os.Stat(filepath.Join(dir, "pulse.sock")); err != nil {
			continue
		}
		capture, playback, err := malgo.Devices("pulseaudio")
		if err == nil && len(capture) >= 3 && len(playback) >= 2 {
			t.Logf("microphones %+v, loudspeakers %+v", capture, playback)
			return
		}
	}
	t.Skip("pulseaudio doesn't come up here")
}
