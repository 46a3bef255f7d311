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

// A Server is a PulseAudio server that can be made to fail.
type Server struct {
	t      *testing.T
	dir    string
	config string
	cmd    *exec.Cmd // nil: it doesn't run
}

// Pulse starts the server, makes it that of this process, and stops it at the end of the test. It skips the test where
// there is no PulseAudio.
func Pulse(t *testing.T) *Server {
	t.Helper()
	for _, program := range []string{"pulseaudio", "paplay", "parec", "pactl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	s := &Server{t: t, dir: t.TempDir()}
	t.Setenv("XDG_RUNTIME_DIR", s.dir)
	t.Setenv("HOME", s.dir)
	t.Setenv("PULSE_SERVER", "unix:"+s.socket())
	s.config = filepath.Join(s.dir, "config.pa")
	err := os.WriteFile(s.config, []byte(fmt.Sprintf(`
load-module module-native-protocol-unix socket=%s auth-anonymous=1
load-module module-null-sink sink_name=mic sink_properties=device.description=MicSink
load-module module-null-sink sink_name=speaker sink_properties=device.description=Speaker
load-module module-remap-source %s
set-default-sink speaker
set-default-source ears
`, s.socket(), microphone)), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	if !s.start() {
		t.Skip("pulseaudio doesn't come up here")
	}
	return s
}

const microphone = "source_name=ears master=mic.monitor source_properties=device.description=Microphone"

func (s *Server) socket() string { return s.dir + "/pulse.sock" }

// Kill ends the server without letting it say so to anybody.
func (s *Server) Kill() {
	if s.cmd != nil {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		s.cmd = nil
		os.Remove(s.socket())
	}
}

// Start starts it again.
func (s *Server) Start() {
	s.t.Helper()
	if !s.start() {
		s.t.Fatal("pulseaudio doesn't come up again")
	}
}

// start reports whether the server has come up with all its devices.
func (s *Server) start() bool {
	s.cmd = exec.Command("pulseaudio", "-n", "-F", s.config, "--daemonize=no", "--exit-idle-time=-1", "--disable-shm=yes", "--use-pid-file=no")
	if err := s.cmd.Start(); err != nil {
		s.cmd = nil
		return false
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 500 {
		<-tick.C
		if _, err := os.Stat(s.socket()); err != nil {
			continue
		}
		capture, playback, err := malgo.Devices("pulseaudio")
		if err == nil && len(capture) >= 3 && len(playback) >= 2 {
			s.t.Logf("microphones %+v, loudspeakers %+v", capture, playback)
			return true
		}
	}
	return false
}

// Unplug takes the microphone away.
func (s *Server) Unplug() { s.pactl("unload-module", "module-remap-source") }

// Plug brings it back.
func (s *Server) Plug() {
	s.pactl("load-module", "module-remap-source", microphone)
	s.pactl("set-default-source", "ears")
}

// Suspend stops the loudspeaker, or lets it go on.
func (s *Server) Suspend(suspended bool) {
	flag := "0"
	if suspended {
		flag = "1"
	}
	s.pactl("suspend-sink", "speaker", flag)
}

// Sink adds a loudspeaker of a certain format, which can be heard as NAME.monitor.
func (s *Server) Sink(name, format string, rate, channels int) {
	s.t.Helper()
	s.pactl("load-module", "module-null-sink", "sink_name="+name, "format="+format, fmt.Sprint("rate=", rate), fmt.Sprint("channels=", channels))
}

func (s *Server) pactl(args ...string) {
	s.t.Helper()
	if out, err := exec.Command("pactl", args...).CombinedOutput(); err != nil {
		s.t.Fatalf("pactl %v: %v: %s", args, err, out)
	}
}
