package device_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"bellbird/deploy/device"
	"bellbird/gpio/ring"
)

// A table is what was measured. Nothing fails because of a figure.
type table struct{ rows [][3]string }

func (b *table) add(what, value, target string) {
	b.rows = append(b.rows, [3]string{what, value, target})
}

func (b *table) String() string {
	var s strings.Builder
	w := tabwriter.NewWriter(&s, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "on a processor that executes an instruction in each nanosecond\tmeasured\ttarget")
	for _, r := range b.rows {
		fmt.Fprintf(w, "%s\t%s\t%s\n", r[0], r[1], r[2])
	}
	_ = w.Flush() // to a string
	return s.String()
}

func percent(x float64) string { return fmt.Sprintf("%.2f %% of a core", 100*x) }

// What the appliance costs on the device's processor, and how quick its body is.
func TestFigures(t *testing.T) {
	var b table
	t.Cleanup(func() { t.Logf("\n%s", &b) })
	t.Run("engines", func(t *testing.T) { measureEngines(t, &b) })
	t.Run("idle", func(t *testing.T) { measureIdle(t, &b) })
	t.Run("start and body", func(t *testing.T) { measureBody(t, &b) })
}

// measureEngines runs benchmarks of packages in the device.
func measureEngines(t *testing.T, b *table) {
	m := boot(t, true)
	// The paths at which the packages' tests look for models.
	run(t, m, "mkdir -p /tmp/w/main/wake /tmp/w/shared; ln -s /share/models /tmp/w/main/models; ln -s /data /tmp/w/shared/data")
	perOp := func(program, name, flags string) time.Duration {
		out := run(t, m, fmt.Sprintf("cd /tmp/w/main/wake && /share/%s.test -test.run '^$' -test.bench '%s' %s", program, name, flags))
		found := regexp.MustCompile(`\s([0-9.]+) ns/op`).FindStringSubmatch(out)
		if found == nil {
			t.Logf("%s %s: %s", program, name, out)
			return 0
		}
		ns, _ := strconv.ParseFloat(found[1], 64) // it matches
		return time.Duration(ns)
	}
	share := func(what, target string, d, of time.Duration) {
		if d == 0 {
			b.add(what, "no models", target)
			return
		}
		b.add(what, percent(float64(d)/float64(of)), target)
	}
	const step = 30 * time.Millisecond
	share("wake engine, features only", "-", perOp("wake", "BenchmarkStep/features$", "-test.benchtime 500x"), step)
	share("wake engine, one model", "-", perOp("wake", "BenchmarkStep/1model$", "-test.benchtime 500x"), step)
	share("wake engine, three models", "-", perOp("wake", "BenchmarkStep/3models$", "-test.benchtime 500x"), step)
	share("wake engine, three models and VAD", "2 %", perOp("wake", "BenchmarkStep/3models_vad$", "-test.benchtime 500x"), step)
	share("openWakeWord, one model", "15 %", perOp("wake", "BenchmarkOpenWakeWordStep/1model$", "-test.benchtime 20x"), 80*time.Millisecond)
	share("echo canceller, while something sounds", "10 %", perOp("echo", "BenchmarkHear/echo$", "-test.benchtime 300x"), 20*time.Millisecond)
	share("echo canceller, in silence", "-", perOp("echo", "BenchmarkHear/silence$", "-test.benchtime 300x"), 20*time.Millisecond)
}

// measureIdle looks at an appliance that waits for its wake word in a quiet room.
func measureIdle(t *testing.T, b *table) {
	for _, c := range []struct{ what, pcm, target string }{
		{"CPU while idle, sound card at 16 kHz mono", "plughw:0,1", "2 %"},
		{"CPU while idle, sound card at 48 kHz stereo with 32 bit", "stereo48", "-"},
	} {
		m := boot(t, true)
		enter(t, m, c.pcm)
		a := start(t, m, body)
		pause(t, m, 5*time.Second)
		cpu, began, sent := a.cpu(), uptime(t, m), m.Wire.Len()
		pause(t, m, 20*time.Second)
		took := uptime(t, m) - began
		b.add(c.what, percent((a.cpu()-cpu).Seconds()/took.Seconds()), c.target)
		if c.pcm == "plughw:0,1" {
			b.add("bytes to the ring while idle", fmt.Sprintf("%.0f a second", float64(m.Wire.Len()-sent)/took.Seconds()), "0")
			b.add("resident memory while idle", strings.TrimSpace(run(t, m, "sed -n 's/^VmRSS: *//p' /proc/"+a.pid+"/status")), "60 MB")
		}
		m.Kill()
	}
}

// measureBody measures the start, and what the kernel sees of presses and of the ring.
func measureBody(t *testing.T, b *table) {
	m := boot(t, false)
	booted := uptime(t, m)
	b.add("power-on to the first program, kernel and network", booted.Round(10*time.Millisecond).String(), "-")
	run(t, m, `mkdir -p /run/bellbird
cd /tmp; /share/bellbird run --models /share/models --state /tmp/state >/tmp/log 2>&1 & echo $! >/tmp/first
until grep -q side=microphone /tmp/log; do sleep 0.02; done; cat /proc/uptime >/tmp/listens; kill $(cat /tmp/first)`)
	listens, _ := strconv.ParseFloat(strings.Fields(run(t, m, "cat /tmp/listens"))[0], 64)
	b.add("from there to listening, first start of the appliance", (time.Duration(listens*float64(time.Second)) - booted).Round(10*time.Millisecond).String(), "-")
	m.Kill()

	m = boot(t, true)
	a := start(t, m, strings.Replace(body, `press = "volume_up"`, "press = \"none\"\nlong = \"none\"", 1))
	shows(t, m, 0, "idle", ring.Scene{Rung: ring.Idle})
	mark(t, m)
	run(t, m, "cd /sys/kernel/tracing; echo mono >trace_clock; echo 1 >events/irq/irq_handler_entry/enable; echo 1 >events/spi/spi_transfer_start/enable; echo 1 >events/spi/spi_transfer_stop/enable; echo 16384 >buffer_size_kb; echo >trace")
	for range presses {
		set(t, m, device.Second, false)
		a.await("button_moved", "Button", "side", "Down", true)
		set(t, m, device.Second, true)
		a.await("button_moved", "Button", "side", "Down", false)
		pause(t, m, 1500*time.Millisecond)
	}
	trace := run(t, m, "grep -e bellbird@ -e spi_transfer -e button_moved /sys/kernel/tracing/trace")
	facts, frames, whole := latencies(trace)
	if len(facts) < presses {
		t.Errorf("only %d of %d presses are in the trace:\n%.5000s", len(facts), presses, trace)
		return
	}
	b.add(fmt.Sprintf("edge to fact, median and worst of %d, with 40 ms of debounce", presses), middleAndWorst(facts), "p99 50 ms")
	b.add("fact to the first other frame on the wire, at most", middleAndWorst(frames), "25 ms")
	b.add("the same, to the last bit of the frame", middleAndWorst(whole), "-")

	// Holding the button moves the ring for twelve seconds.
	set(t, m, device.Button, false)
	from := a.await("button_pressed", "Button", "top", "Gesture", "reset_warned")
	sent := m.Wire.Len()
	to := a.await("button_pressed", "Button", "top", "Gesture", "reset_armed")
	b.add("bytes to the ring while it moves", fmt.Sprintf("%.0f a second", float64(m.Wire.Len()-sent)/moment(t, to).Sub(moment(t, from)).Seconds()), "-")
}

const presses = 30

func moment(t testing.TB, f fact) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(f.Data["At"]))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// mark has the facts written into the kernel's trace.
func mark(t testing.TB, m *device.Machine) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.API()+"/mark", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer, err)
	}
	context.AfterFunc(t.Context(), func() { answer.Body.Close() })
}

// latencies are, for each press in a trace: from its first edge to the fact, as a reader of the socket gets it; and from the
// end of the debounce, before which nobody can know of it, to the beginning and to the end of the next frame.
func latencies(trace string) (facts, frames, whole []time.Duration) {
	const debounce = 40 * time.Millisecond
	line := regexp.MustCompile(`\s([0-9]+\.[0-9]+): (\w+): (.*)`)
	var edge, begun, done, told time.Duration // zero: not yet
	for l := range strings.Lines(trace) {
		found := line.FindStringSubmatch(l)
		if found == nil {
			continue
		}
		seconds, _ := strconv.ParseFloat(found[1], 64) // it matches
		now := time.Duration(seconds * float64(time.Second))
		switch what := found[2]; {
		case what == "irq_handler_entry" && edge == 0:
			edge, begun, done, told = now, 0, 0, 0
		case what == "spi_transfer_start" && edge > 0 && begun == 0:
			begun = now
		case what == "spi_transfer_stop" && begun > 0 && done == 0:
			done = now
		case strings.Contains(found[3], `"Down":true`):
			told = now
		case strings.Contains(found[3], `"Down":false`):
			if edge > 0 && told > 0 && done > 0 {
				facts, frames, whole = append(facts, told-edge), append(frames, begun-edge-debounce), append(whole, done-edge-debounce)
			}
			edge = 0
		}
	}
	return facts, frames, whole
}

func middleAndWorst(d []time.Duration) string {
	slices.Sort(d)
	return fmt.Sprintf("%.1f ms, %.1f ms", float64(d[len(d)/2].Microseconds())/1000, float64(d[len(d)-1].Microseconds())/1000)
}

// data is the directory of recordings and models beside the checkout; empty if there is none.
func data() string {
	dir, err := filepath.Abs("../../../shared/data")
	if err != nil {
		return ""
	}
	if _, err := os.Stat(dir); err != nil {
		return ""
	}
	return dir
}
