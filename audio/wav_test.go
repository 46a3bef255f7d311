package audio_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"bellbird/audio"
)

// wav builds a file from its parts.
func wav(code uint16, channels, rate, bits int, promise uint32, data []byte, more ...string) []byte {
	le := binary.LittleEndian
	b := []byte("RIFF\xff\xff\xff\xffWAVE")
	for _, chunk := range more {
		b = append(b, chunk...)
	}
	desc := le.AppendUint16(nil, code)
	desc = le.AppendUint16(desc, uint16(channels))
	desc = le.AppendUint32(desc, uint32(rate))
	desc = le.AppendUint32(desc, uint32(rate*channels*bits/8))
	desc = le.AppendUint16(desc, uint16(channels*bits/8))
	desc = le.AppendUint16(desc, uint16(bits))
	if code == 0xfffe {
		desc = append(desc, 22, 0, byte(bits), 0, 0, 0, 0, 0, 1, 0)
		desc = append(desc, "\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"...)
	}
	b = append(b, "fmt "...)
	b = le.AppendUint32(b, uint32(len(desc)))
	b = append(append(b, desc...), "data"...)
	return append(le.AppendUint32(b, promise), data...)
}

func read(t *testing.T, file []byte) ([]int16, error) {
	t.Helper()
	w, err := audio.NewWAVReader(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	var all []int16
	buf := make([]int16, 64)
	for {
		n, err := w.Read(buf)
		all = append(all, buf[:n]...)
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}

func TestReadWAVSamples(t *testing.T) {
	le := binary.LittleEndian
	f32 := func(v ...float64) (b []byte) {
		for _, v := range v {
			b = le.AppendUint32(b, math.Float32bits(float32(v)))
		}
		return b
	}
	f64 := func(v ...float64) (b []byte) {
		for _, v := range v {
			b = le.AppendUint64(b, math.Float64bits(v))
		}
		return b
	}
	for _, row := range []struct {
		name string
		file []byte
		want []int16
	}{
		{"8 bit", wav(1, 1, 8000, 8, 3, []byte{0, 128, 255}), []int16{-32768, 0, 127 << 8}},
		{"16 bit", wav(1, 1, 8000, 16, 4, []byte{1, 2, 0xff, 0xff}), []int16{0x201, -1}},
		{"16 bit stereo", wav(1, 2, 8000, 16, 4, []byte{1, 0, 2, 0}), []int16{1, 2}},
		{"24 bit", wav(1, 1, 8000, 24, 9, []byte{0, 1, 2, 0x80, 0xff, 0xff, 0xff, 0xff, 0x7f}), []int16{0x201, 0, 32767}},
		{"32 bit", wav(1, 1, 8000, 32, 8, []byte{0, 0, 1, 2, 0, 0x80, 0, 0x80}), []int16{0x201, -32767}},
		{"float", wav(3, 1, 8000, 32, 20, f32(0.5, -1, 1, 9, math.NaN())), []int16{16384, -32768, 32767, 32767, 0}},
		{"double", wav(3, 1, 8000, 64, 16, f64(-0.25, math.Inf(-1))), []int16{-8192, -32768}},
		{"extensible", wav(0xfffe, 1, 8000, 16, 2, []byte{5, 0}), []int16{5}},
		{"other chunks", wav(1, 1, 8000, 16, 2, []byte{5, 0}, "LIST\x03\x00\x00\x00abc\x00", "bext\x00\x00\x00\x00"), []int16{5}},
		{"chunks after the sound", wav(1, 1, 8000, 16, 2, []byte{5, 0, 'L', 'I', 'S', 'T'}), []int16{5}},
		{"half a sample at the end", wav(1, 1, 8000, 16, 3, []byte{5, 0, 7}), []int16{5}},
		{"unknown length", wav(1, 1, 8000, 16, 0xffffffff, []byte{5, 0, 6, 0}), []int16{5, 6}},
		{"length of a pipe", wav(1, 1, 8000, 16, 0x7ffff000, []byte{5, 0, 6, 0}), []int16{5, 6}},
		{"no length", wav(1, 1, 8000, 16, 0, []byte{5, 0, 6, 0}), []int16{5, 6}},
		{"no sound", wav(1, 1, 8000, 16, 0, nil), nil},
	} {
		got, err := read(t, row.file)
		if err != nil || !slices.Equal(got, row.want) {
			t.Errorf("%s: %d, %v, want %d", row.name, got, err, row.want)
		}
	}
}

func TestReadFileErrors(t *testing.T) {
	whole := wav(1, 1, 8000, 16, 16000, make([]byte, 16000))
	for _, row := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty.wav", nil, "the file is empty"},
		{"text.wav", []byte("hello, world, this is text"), "neither WAV nor FLAC: convert it with: sox"},
		{"avi.wav", []byte("RIFF\x00\x00\x00\x00AVI LIST"), "not a WAV file"},
		{"short.wav", whole[:5000], "truncated: the header promises 1.0 s, the file has 0.3 s"},
		{"header.wav", whole[:30], "truncated: it ends before the sound begins"},
		{"alaw.wav", wav(6, 1, 8000, 8, 2, []byte{1, 2}), "its encoding is A-law, which can't be read: convert it with: sox IN -r 16000 -c 1 -b 16 OUT.wav"},
		{"odd.wav", wav(0x1234, 1, 8000, 8, 2, []byte{1, 2}), "its encoding is number 0x1234"},
		{"bits.wav", wav(1, 1, 8000, 12, 2, []byte{1, 2}), "samples of 12 bit can't be read"},
		{"channels.wav", wav(1, 9, 8000, 16, 2, []byte{1, 2}), "9 channels: 1 to 8 can be read"},
		{"mute.wav", wav(1, 0, 8000, 16, 2, []byte{1, 2}), "0 channels: 1 to 8 can be read"},
		{"fast.wav", wav(1, 1, 200000, 16, 2, []byte{1, 2}), "a rate of 200000 Hz: 4000 to 192000 can be read"},
		{"order.wav", []byte("RIFF\x00\x00\x00\x00WAVEdata\x02\x00\x00\x00\x01\x02"), "the sound comes before its description"},
		{"broken.flac", []byte("fLaC\x00\x00\x00\x22garbage that is long enough to be the description of a stream"), "FLAC"},
		{"short.flac", []byte("fLaC"), "broken FLAC"},
	} {
		path := filepath.Join(t.TempDir(), row.name)
		if err := os.WriteFile(path, row.file, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := audio.ReadFile(path)
		if err == nil || !strings.Contains(err.Error(), row.want) || !strings.HasPrefix(err.Error(), path+": ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with %q", row.name, err, row.want)
		}
	}
	if _, _, err := audio.ReadFile(filepath.Join(t.TempDir(), "nothing.wav")); !os.IsNotExist(err) {
		t.Errorf("a missing file: %v", err)
	}
}

// Whatever pieces the file comes in, the samples are the same, and what has come is not held back.
func TestReadWAVInPieces(t *testing.T) {
	data := make([]byte, 3000)
	for i := range data {
		data[i] = byte(i * 7)
	}
	file := wav(1, 3, 8000, 24, 0xffffffff, data)
	want, err := read(t, file)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]io.Reader{
		"bytes":  iotest.OneByteReader(bytes.NewReader(file)),
		"halves": iotest.HalfReader(bytes.NewReader(file)),
		"EOF":    iotest.DataErrReader(bytes.NewReader(file)),
	} {
		w, err := audio.NewWAVReader(r)
		if err != nil {
			t.Fatal(err)
		}
		var got []int16
		buf := make([]int16, 100)
		for err == nil {
			var n int
			n, err = w.Read(buf)
			got = append(got, buf[:n]...)
		}
		if err != io.EOF || !slices.Equal(got, want) {
			t.Errorf("%s: %d samples, %v, want %d", name, len(got), err, len(want))
		}
	}
	r, w := io.Pipe()
	go w.Write(file[:100])
	in, err := audio.NewWAVReader(r)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := in.Read(make([]int16, 1000)); n == 0 || err != nil {
		t.Errorf("%d samples of an unfinished file, %v", n, err)
	}
	if _, err := in.Read(make([]int16, 2)); err != io.ErrShortBuffer {
		t.Errorf("room for less than one sample a channel: %v", err)
	}
}

func TestWriteWAV(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.wav")
	w, err := audio.CreateWAV(path, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		if err := w.Write(numbered(i), numbered(-i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Write(numbered(1)); err == nil {
		t.Error("one frame for two channels was taken")
	}
	// Killed here, the file can be read as far as it was written.
	unfinished, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := read(t, unfinished); err != nil || len(got) < 100*audio.FrameSize {
		t.Errorf("of the unfinished file %d samples can be read, %v", len(got), err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(numbered(1), numbered(1)); err == nil {
		t.Error("a closed file was written to")
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if size := binary.LittleEndian.Uint32(file[4:]); int(size) != len(file)-8 {
		t.Errorf("the header says %d bytes, the file has %d", size, len(file)-8)
	}
	got, err := read(t, file)
	if err != nil || len(got) != 200*2*audio.FrameSize {
		t.Fatalf("%d samples, %v", len(got), err)
	}
	for i := range got {
		want := int16(i / 2 / audio.FrameSize)
		if i%2 == 1 {
			want = -want
		}
		if got[i] != want {
			t.Fatalf("sample %d is %d, want %d", i, got[i], want)
		}
	}
	samples, format, err := audio.ReadFile(path)
	if err != nil || len(samples) != 200*audio.FrameSize || samples[5000] != 0 {
		t.Errorf("read %d samples, %v: the channels should cancel out", len(samples), err)
	}
	if format.Inner() || format.String() != "16000 Hz, 2 channels, 16 bit" || format.Length != 4*time.Second {
		t.Errorf("format %q, %v, inner %v", format, format.Length, format.Inner())
	}
}

func TestWriteWAVSamples(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.wav")
	w, err := audio.CreateWAV(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := sine(12345, 440, 0.5, audio.SampleRate)
	if err := w.WriteSamples(want); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, format, err := audio.ReadFile(path)
	if err != nil || !format.Inner() || !slices.Equal(got, want) {
		t.Errorf("%d samples, %v, %v", len(got), format, err)
	}
	if _, err := audio.CreateWAV(filepath.Join(path, "no"), 1); err == nil {
		t.Error("a file was made inside a file")
	}
	if _, err := audio.CreateWAV(filepath.Join(t.TempDir(), "x.wav"), 9); err == nil {
		t.Error("a file with 9 channels was made")
	}
}

// What sox and flac write is read as the sine that it is.
func TestReadFilesOfSox(t *testing.T) {
	sox, err := exec.LookPath("sox")
	if err != nil {
		t.Skip("sox is not installed")
	}
	dir := t.TempDir()
	in := filepath.Join(dir, "in.wav")
	const hertz = 700
	make48k(t, in, hertz)
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"-b", "16", "x.wav"}, "48000 Hz, mono, 16 bit"},
		{[]string{"-b", "24", "-c", "6", "x.wav"}, "48000 Hz, 6 channels, 24 bit"},
		{[]string{"-b", "32", "-r", "44100", "-c", "2", "x.wav"}, "44100 Hz, 2 channels, 32 bit"},
		{[]string{"-e", "float", "-b", "32", "-r", "22050", "x.wav"}, "22050 Hz, mono, 32 bit float"},
		{[]string{"-b", "8", "-r", "8000", "x.wav"}, "8000 Hz, mono, 8 bit"},
		{[]string{"-b", "16", "-r", "192000", "x.wav"}, "192000 Hz, mono, 16 bit"},
		{[]string{"-b", "16", "-c", "2", "-r", "44100", "x.flac"}, "44100 Hz, 2 channels, 16 bit"},
		{[]string{"-b", "24", "-r", "48000", "x.flac"}, "48000 Hz, mono, 24 bit"},
		{[]string{"-b", "8", "-r", "16000", "x.flac"}, "16000 Hz, mono, 8 bit"},
	} {
		path := filepath.Join(dir, row.args[len(row.args)-1])
		row.args[len(row.args)-1] = path
		if out, err := exec.Command(sox, append([]string{"-D", in}, row.args...)...).CombinedOutput(); err != nil {
			t.Logf("sox %v: %v: %s", row.args, err, out)
			continue
		}
		got, format, err := audio.ReadFile(path)
		if err != nil {
			t.Errorf("%s: %v", row.want, err)
			continue
		}
		if format.String() != row.want || len(got) < 16000 || len(got) > 16010 {
			t.Errorf("got %v with %d samples, want %s", format, len(got), row.want)
		}
		amp, rest := fit(got[1000:15000], hertz, audio.SampleRate)
		limit := -70.0
		if format.Bits == 8 {
			limit = -40
		}
		if amp < 0.49 || amp > 0.51 || rest > limit {
			t.Errorf("%s: amplitude %.3f, all else %.1f dB", row.want, amp, rest)
		}
		// Cut in the middle, it says so.
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := audio.Decode(bytes.NewReader(file[:len(file)/2])); err == nil {
			t.Errorf("%s: half of it was read without an error", row.want)
		}
	}
}

func make48k(t *testing.T, path string, hertz float64) {
	t.Helper()
	var data []byte
	for _, s := range sine(48000, hertz, 0.5, 48000) {
		data = binary.LittleEndian.AppendUint16(data, uint16(s))
	}
	if err := os.WriteFile(path, wav(1, 1, 48000, 16, uint32(len(data)), data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func FuzzReadWAV(f *testing.F) {
	f.Add(wav(1, 1, 8000, 16, 4, []byte{1, 2, 3, 4}))
	f.Add(wav(1, 2, 44100, 24, 0xffffffff, make([]byte, 60)))
	f.Add(wav(3, 1, 22050, 32, 8, make([]byte, 8)))
	f.Add(wav(0xfffe, 8, 192000, 32, 0, make([]byte, 64), "LIST\x03\x00\x00\x00abc\x00"))
	f.Add([]byte("fLaC\x00\x00\x00\x22"))
	f.Fuzz(func(t *testing.T, file []byte) {
		samples, format, err := audio.Decode(bytes.NewReader(file))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %q", err)
			}
			return
		}
		// A byte of the file is at most a sample, at 4 kHz or more.
		if format.Container == "WAV" && len(samples) > 4*len(file)+4 {
			t.Errorf("%d samples out of %d bytes", len(samples), len(file))
		}
	})
}

func ExampleReadFile() {
	samples, format, err := audio.ReadFile("testdata/room.flac")
	if err != nil {
		fmt.Println("there is no such file")
		return
	}
	if !format.Inner() {
		fmt.Println("converted from", format)
	}
	fmt.Println(len(samples))
	// Output: there is no such file
}
