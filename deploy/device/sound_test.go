package device_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bellbird/audio"
	"bellbird/deploy/device"
	"bellbird/gpio/ring"
	"bellbird/stt/pocketsphinx"
)

// room plays what is heard in the room into the appliance's microphone: the noise of a quiet one, a second at a time, and
// in between once what is put at /tmp/say. Its own end of the sound card is the other one than the appliance's.
const room = `cat >/root/.asoundrc <<-end
	pcm.stereo48 {
		type plug
		slave { pcm "hw:0,1" rate 48000 channels 2 format S32_LE }
	}
end
touch /tmp/room
while [ -e /tmp/room ]; do
	if [ -e /tmp/say ]; then mv /tmp/say /tmp/said; cat /tmp/said; else cat /tmp/noise; fi
done | aplay -q -t raw -f S16_LE -r 16000 -c 1 -D %[1]s -`

// ear records what the appliance says.
const ear = `exec arecord -q -t raw -f S16_LE -r 16000 -c 1 -D %[1]s /tmp/heard`

// A user speaks to the appliance on the sound card of a device, and hears what it says.
type user struct {
	t testing.TB
	m *device.Machine
}

// enter begins to play the room and to record the loudspeaker, by an ALSA name of the user's end. The appliance has to be started after it: who opens a side
// of the loopback first decides its format.
func enter(t testing.TB, m *device.Machine, pcm string) *user {
	t.Helper()
	u := &user{t, m}
	if err := m.Put(within(t), "/tmp/noise", raw(hiss(time.Second))); err != nil {
		t.Fatal(err)
	}
	for _, script := range []string{fmt.Sprintf(room, pcm), fmt.Sprintf(ear, pcm)} {
		go func() {
			var out bytes.Buffer
			code, err := m.Stream(t.Context(), script, &out)
			select {
			case <-m.Ended(): // with the machine
			case <-t.Context().Done():
			default:
				t.Logf("the room ended: exit code %d, error %v: %s", code, err, &out)
			}
		}()
	}
	run(t, m, "until grep -q RUNNING /proc/asound/card0/pcm1p/sub0/status; do sleep 0.1; done")
	return u
}

// say plays samples to the appliance, with the room's noise.
func (u *user) say(samples []int16) {
	u.t.Helper()
	noise := hiss(time.Duration(len(samples)) * time.Second / 16000)
	for i, v := range samples[:len(noise)] {
		noise[i] = int16(max(min(int(noise[i])+int(v), 32767), -32768))
	}
	if err := u.m.Put(within(u.t), "/tmp/saying", raw(noise)); err != nil {
		u.t.Fatal(err)
	}
	run(u.t, u.m, "mv /tmp/saying /tmp/say")
}

// heard is what the appliance has said, recognised.
func (u *user) heard() []string {
	u.t.Helper()
	sound := run(u.t, u.m, "cat /tmp/heard")
	samples := make([]int16, len(sound)/2)
	for i := range samples {
		samples[i] = int16(binary.LittleEndian.Uint16([]byte(sound[2*i:])))
	}
	return recognize(u.t, samples)
}

// hiss is the noise of a quiet room: a real one is never silent.
func hiss(d time.Duration) []int16 {
	random := rand.New(rand.NewPCG(1, 2))
	samples := make([]int16, d*16000/time.Second)
	for i := range samples {
		samples[i] = int16(random.NormFloat64() * 18) // -65 dBFS
	}
	return samples
}

func raw(samples []int16) []byte {
	b := make([]byte, 0, 2*len(samples))
	for _, v := range samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return b
}

// recording is a recording of a person.
func recording(t testing.TB, name string) []int16 {
	t.Helper()
	samples, _, err := audio.ReadFile(filepath.Join(data(), "speech", name))
	if err != nil {
		t.Fatal(err)
	}
	return samples
}

// trim leaves out what is quiet at the end: a call and its order follow each other.
func trim(samples []int16) []int16 {
	for len(samples) > audio.FrameSize && audio.Measure(samples[len(samples)-audio.FrameSize:]).RMS < -48 {
		samples = samples[:len(samples)-audio.FrameSize]
	}
	return samples
}

// spoken is text spoken by espeak-ng, as loud as a person.
func spoken(t testing.TB, text string) []int16 {
	t.Helper()
	out, err := exec.Command("espeak-ng", "-v", "en-us+m5", "--stdout", text).Output()
	if err != nil {
		t.Fatal("espeak-ng: ", err)
	}
	samples, _, err := audio.Decode(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	return samples
}

func silence(d time.Duration) []int16 { return make([]int16, d*16000/time.Second) }

// answers is the grammar of what the appliance says here.
var answers = pocketsphinx.Grammar{JSGF: `#JSGF V1.0;
grammar answers;
public <answer> = it's <hour> [o'clock | <minute> | oh <digit>] [(a | p) m] | timer set for <digit> minutes | sorry i didn't catch that | sorry i can't answer that at the moment;
<digit> = one | two | three | four | five | six | seven | eight | nine;
<hour> = <digit> | ten | eleven | twelve;
<tens> = twenty | thirty | forty | fifty;
<minute> = ten | eleven | twelve | thirteen | fourteen | fifteen | sixteen | seventeen | eighteen | nineteen | <tens> [<digit>];
`, Words: strings.Fields("it's o'clock oh a p m timer set for minutes sorry i didn't catch that can't answer at the moment one two three four " +
	"five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty")}

// recognize finds the pieces of speech in sound, leaves out tones, and recognises them.
func recognize(t testing.TB, sound []int16) []string {
	t.Helper()
	r, err := pocketsphinx.New(pocketsphinx.Options{Strictness: -1}, answers)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var all []string
	for _, piece := range pieces(sound) {
		around := make([]audio.Frame, 10)
		frames := make(chan audio.Frame, len(piece)+2*len(around))
		for _, part := range [][]audio.Frame{around, piece, around} {
			for _, f := range part {
				frames <- f
			}
		}
		close(frames)
		text, err := r.Recognize(context.Background(), frames)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	return all
}

// pieces cuts sound at half a second of silence, and leaves out what is shorter than a second: tones.
func pieces(sound []int16) [][]audio.Frame {
	const gap, shortest = 25, 50
	var all [][]audio.Frame
	var piece []audio.Frame
	quiet := 0
	for len(sound) >= audio.FrameSize {
		f := audio.Frame(sound[:audio.FrameSize])
		sound = sound[audio.FrameSize:]
		if audio.Measure(f[:]).RMS < -60 {
			quiet++
		} else {
			piece, quiet = append(piece, f), 0
		}
		if quiet == gap || len(sound) < audio.FrameSize {
			if len(piece) >= shortest {
				all = append(all, piece)
			}
			piece = nil
		}
	}
	return all
}

// The appliance hears a person over ALSA, answers there, and the ring shows it all.
func TestHears(t *testing.T) {
	m := boot(t, true)
	word, call := "okay_nabu", spoken(t, "okay nabu.")
	if data() != "" {
		word, call = "alexa", trim(recording(t, "wake/alexa/alexa_232.flac"))
	} else {
		t.Log("there are no recordings of people: espeak-ng speaks for them")
	}
	order := slices.Concat(call, silence(500*time.Millisecond), spoken(t, "what time is it"), silence(time.Second))
	u := enter(t, m, "plughw:0,1")
	a := start(t, m, "[wake]\nwords = [\""+word+"\"]\n"+body)
	at := shows(t, m, 0, "idle", ring.Scene{Rung: ring.Idle})
	pause(t, m, 2*time.Second) // the models need some of the room
	u.say(order)
	woke := a.await("woke", "Word", word)
	t.Log(woke)
	a.await("state_changed", "To", "listening")
	at = shows(t, m, at, "listening", ring.Scene{Rung: ring.Listening})
	f := a.await("heard")
	if f.Data["Text"] != "what time is it" {
		t.Errorf("it heard %q", f.Data["Text"])
	}
	a.await("state_changed", "To", "speaking")
	at = shows(t, m, at, "speaking", ring.Scene{Rung: ring.Speaking})
	f = a.await("turn_ended")
	t.Log(f)
	shows(t, m, at, "idle", ring.Scene{Rung: ring.Idle})
	pause(t, m, time.Second)
	if got := u.heard(); len(got) != 1 || !strings.HasPrefix(got[0], "it's ") {
		t.Errorf("the loudspeaker said %q", got)
	} else {
		t.Logf("the loudspeaker said %q", got)
	}
}
