package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bellbird/api"
	"bellbird/console/consoletest"
	"bellbird/event"
)

// pictures is where the tests of the console leave what they saw.
const pictures = "../../build/console"

// A line is how a browser reaches the appliance, and can be cut.
type line struct {
	t       *testing.T
	address string
	proxy   http.Handler
	server  *http.Server
}

// connect puts a line before an address.
func connect(t *testing.T, to string) *line {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	l := &line{t: t, address: "127.0.0.1:0", proxy: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // as the page's origin has it
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}}
	l.mend()
	t.Cleanup(l.cut)
	return l
}

// mend lets the line work, again at the same address.
func (l *line) mend() {
	l.t.Helper()
	listener, err := net.Listen("tcp", l.address)
	if err != nil {
		l.t.Fatal(err)
	}
	l.address, l.server = listener.Addr().String(), &http.Server{Handler: l.proxy}
	go l.server.Serve(listener)
}

// cut ends all connections, and refuses new ones.
func (l *line) cut() { l.server.Close() }

// addPlugin puts a plugin into an appliance's directory.
func addPlugin(t *testing.T, dir, name, manifest string, files map[string]string) {
	t.Helper()
	at := filepath.Join(dir, "state", "plugins", name)
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(at, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(at, "plugin.json"), []byte(manifest), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The console shows and steers an appliance that runs, in a real browser.
func TestConsole(t *testing.T) {
	if underRace {
		t.Skip("the page is shown to an appliance without the race detector")
	}
	b := consoletest.Open(t)
	dir := t.TempDir()
	addPlugin(t, dir, "polite", `{"name": "polite", "version": "1.0.0", "description": "Says <img src=x onerror=alert(1)> thanks.", "surfaces": ["chat"],
		"capabilities": {"hooks": {"post_llm": "polite.star"}, "settings": [
			{"key": "words", "type": "string", "label": "The words", "default": "Thank you."},
			{"key": "often", "type": "number", "label": "How often", "default": 1, "min": 0, "max": 1},
			{"key": "loud", "type": "boolean", "label": "Loudly", "default": false},
			{"key": "tone", "type": "string", "label": "Tone", "default": "warm", "options": [{"label": "Warm", "value": "warm"}, {"label": "Cool", "value": "cool"}]}]}}`,
		map[string]string{"polite.star": "def post_llm(event):\n    event.response += \" Thank you.\"\n"})
	addPlugin(t, dir, "rude", `{"name": "rude", "version": "1.0.0", "description": "Nobody allowed it.", "capabilities": {"hooks": {"post_llm": "rude.star"}}}`,
		map[string]string{"rude.star": "def post_llm(event):\n    event.response = \"No.\"\n"})
	h := live(t, dir)
	l := connect(t, h.web)
	page := "http://" + l.address + "/"
	picture := func(name string) { b.Screenshot(filepath.Join(pictures, name+".png")) }
	clean := func(expected ...string) {
		b.T.Helper()
	next:
		for _, c := range b.Complaints() {
			for _, e := range expected {
				if strings.Contains(c, e) {
					continue next
				}
			}
			b.T.Errorf("the page complains: %s", c)
		}
	}
	// step is a part of the test. What fails in it ends only that.
	step := func(name string, f func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			b.T, h.t = t, t
			f(t)
		})
		b.T, h.t = t, t
	}
	asked := 0
	// ask has the page ask what time it is, and waits until its turn is shown.
	ask := func() {
		b.T.Helper()
		asked++
		b.Type("#text", "what time is it"+consoletest.Enter)
		b.Until("document.querySelectorAll('#turns details').length === arguments[0] && /^It's/.test([...document.querySelectorAll('#log .bellbird .words')].at(-1)?.textContent)", asked)
	}

	step("first load", func(t *testing.T) {
		b.Visit(page)
		b.Until("performance.getEntriesByName('ready').length")
		b.Until("document.getElementById('state').textContent === 'Idle' && document.getElementById('volume').value === '70'")
		b.Until("document.getElementById('chat').textContent === 'In the chat default' && document.getElementById('banner').hidden")
		var got struct {
			Bytes, Requests int
			Ready           float64
			Foreign         []string
		}
		b.Eval(&got, `const all = [performance.getEntriesByType("navigation")[0], ...performance.getEntriesByType("resource")].filter(e => !e.name.includes("/api/events"));
			return {bytes: all.reduce((n, e) => n + e.transferSize, 0), requests: all.length, ready: performance.getEntriesByName("ready")[0].startTime,
				foreign: all.map(e => e.name).filter(n => !n.startsWith(location.origin))}`)
		t.Logf("first load: %d bytes in %d requests, everything can be used after %.0f ms", got.Bytes, got.Requests, got.Ready)
		if len(got.Foreign) > 0 || got.Bytes == 0 || got.Bytes > 200_000 {
			t.Errorf("first load: %+v", got)
		}
		picture("first-load")
		clean()
	})

	step("keyboard", func(t *testing.T) {
		var order []string
		for range 9 {
			b.Press(consoletest.Tab)
			var at string
			b.Eval(&at, "return document.activeElement.id || document.activeElement.getAttribute('href')")
			order = append(order, at)
		}
		if got := strings.Join(order, " "); got != "#main #/now #/chats #/plugins #/timers #/models volume silent mute" {
			t.Errorf("the keyboard goes through %s", got)
		}
		b.Press(" ")
		h.until("it is muted", h.body.mute.Muted)
		b.Press(" ")
		h.until("it is not any more", func() bool { return !h.body.mute.Muted() })
	})

	step("turn", func(t *testing.T) {
		h.shows(words("plugin consent --yes --allow-unsigned polite"), "polite is allowed")
		h.shows(words("plugin enable polite"), "polite is enabled")
		ask()
		b.Until("document.querySelector('#log .you .words').textContent === 'what time is it' && document.querySelector('#log .bellbird .words').textContent.endsWith('Thank you.')")
		b.Until("[...document.querySelectorAll('#turns .waterfall tr.stage th')].some(e => e.textContent === 'end')")
		b.Until("[...document.querySelectorAll('#turns .waterfall tr.hook')].some(e => /polite post_llm/.test(e.textContent) && / of 250 ms/.test(e.textContent))")
		picture("turn")
		clean()
	})

	step("ring", func(t *testing.T) {
		h.bus.Publish(event.StateChanged{At: time.Now(), From: event.Idle, To: event.Thinking})
		b.Until("document.getElementById('state').textContent === 'Thinking' && document.getElementById('ring').ariaLabel.includes('works on the answer')")
		b.Until("[...document.querySelectorAll('#ring circle[fill]')].some(e => e.getAttribute('fill') !== 'rgb(0 0 0)')")
		picture("thinking")
		h.bus.Publish(event.StateChanged{At: time.Now(), From: event.Thinking, To: event.Idle})
		h.bus.Publish(event.NearMiss{At: time.Now(), Word: "okay nabu", Peak: 0.81, Bar: 0.9, Scores: []float64{0.1, 0.4, 0.81, 0.3}})
		b.Until("document.querySelector('#log').textContent.includes('Nearly woke to “okay nabu” (0.81, not above 0.90)') && document.querySelector('#log polyline')")
		h.bus.Publish(event.TurnEnded{Record: event.Record{Run: 9_000, Outcome: event.FailedTurn, Error: event.ModelFailed, Stages: event.Stages{End: event.Millis(time.Second)},
			Hooks: []event.HookCall{{Point: "pre_chat", Plugin: "slow", Outcome: "missed", Took: event.Millis(501 * time.Millisecond)}}}})
		b.Until("document.getElementById('ring').ariaLabel.includes('failed') && document.querySelector('#turns tr.over').textContent.includes('501 ms of 500 ms')")
		picture("failed")
		b.Until("document.getElementById('ring').ariaLabel.includes('waits')")
		asked++
	})

	step("private", func(t *testing.T) {
		h.shows(words("chat new diary"), "there now")
		h.shows(words("chat set diary private_chat=true"), "private_chat=true")
		h.shows(words("ask --chat diary what's the date"), "It's ")
		ask() // so that what is told of the private turn would have come before
		var text string
		b.Eval(&text, "return document.getElementById('log').textContent")
		if strings.Contains(text, "date") || strings.Count(text, "what time is it") != 2 {
			t.Errorf("the page shows %q", text)
		}
	})

	step("sound", func(t *testing.T) {
		b.Eval(nil, "const v = document.getElementById('volume'); v.focus(); v.value = '25'; v.dispatchEvent(new Event('change'))")
		b.Click("#silent")
		b.Click("#mute")
		h.until("it is quiet", func() bool { return h.output.Volume() == 25 && h.output.Muted() && h.body.mute.Muted() })
		b.Until("document.getElementById('shows').textContent.startsWith('The microphone is muted') && document.getElementById('percent').textContent === '25 %'")
		b.Click("#silent")
		b.Click("#mute")
		h.until("it is not any more", func() bool { return !h.output.Muted() && !h.body.mute.Muted() })
		// What others change is shown.
		h.fetch("PUT", "/api/volume", `{"percent": 55}`)
		b.Until("document.getElementById('volume').value === '55'")
		clean()
	})

	step("plugins", func(t *testing.T) {
		b.Click(`nav a[href="#/plugins"]`)
		b.Until("document.querySelector('#plugins').textContent.includes('Says <img src=x onerror=alert(1)> thanks.') && !document.querySelector('#plugins img')")
		loaded := func() bool {
			var p api.Plugin
			h.get("/api/plugins/polite", &p)
			return p.Loaded
		}
		b.Click(`[aria-label="Enable polite"]`)
		h.until("it is off", func() bool { return !loaded() })
		b.Until("!document.querySelector(arguments[0]).checked && !document.querySelector(arguments[0]).disabled && document.activeElement.matches(arguments[0])", `[aria-label="Enable polite"]`)
		b.Click(`[aria-label="Enable polite"]`)
		h.until("it is on", loaded)
		b.Until("document.querySelector(arguments[0]).checked", `.plugin.on [aria-label="Enable polite"]`)
		// Why one can't be is told.
		b.Click(`[aria-label="Enable rude"]`)
		b.Until("document.querySelector('.plugin.failed .note.bad').textContent.includes('plugin consent rude')")
		b.Click(`details[data-name=polite] summary`)
		b.Type(`details[data-name=polite] [name=words]`, "Cheers.")
		b.Click(`details[data-name=polite] [name=loud]`)
		picture("plugins")
		b.Click(`details[data-name=polite] button.first`)
		h.until("its settings are changed", func() bool {
			_, _, text := h.fetch("GET", "/api/plugins/polite/settings", "")
			return strings.Contains(string(text), `"value":"Cheers."`) && strings.Contains(string(text), `"value":true`)
		})
		clean("409")
	})

	step("chats", func(t *testing.T) {
		const name = `<b>HTML</b> & "co"/é`
		b.Click(`nav a[href="#/chats"]`)
		b.Type("#chats form input", name+consoletest.Enter)
		b.Until("[...document.querySelectorAll('#chats h2')].some(e => e.textContent === arguments[0])", name)
		b.Eval(nil, "[...document.querySelectorAll('#chats h2')].find(e => e.textContent === arguments[0]).closest('article').id = 'mine'", name)
		b.Click("#mine details:nth-of-type(1) summary")
		b.Type("#mine [name=custom_context]", "Onions.")
		b.Type("#mine [name=ghost_context]", "Keep it short.")
		b.Click("#mine [name=inject_datetime]")
		b.Click("#mine .settings button.first")
		b.Until("document.querySelector('#mine .settings .note').textContent === 'Saved.'")
		_, _, text := h.fetch("GET", "/api/chats/"+url.PathEscape(name)+"/settings", "")
		for _, want := range []string{`"custom_context":"Onions."`, `"ghost_context":"Keep it short."`, `"inject_datetime":true`} {
			if !strings.Contains(string(text), want) {
				t.Errorf("no %s in %s", want, text)
			}
		}
		b.Click("#mine details:nth-of-type(2) summary")
		b.Type("#mine [name=input]", "how long do eggs take"+consoletest.Enter)
		b.Until("document.querySelector('#mine .message.system').textContent.includes('Onions.') && document.querySelector('#mine .message.ghost').textContent.includes('Keep it short.')")
		b.Until("[...document.querySelectorAll('#mine .message.user')].at(-1).textContent.includes('how long do eggs take')")
		b.Eval(nil, "document.getElementById('mine').scrollIntoView()")
		picture("chats")
		clean()
	})

	step("timers and models", func(t *testing.T) {
		b.Click(`nav a[href="#/timers"]`)
		b.Type("#timers .row .field:nth-child(1) input", "10000")
		b.Type("#timers .row .field:nth-child(3) input", "<eggs>"+consoletest.Enter)
		b.Until("document.querySelector('#timers .timer b')?.textContent === '<eggs>'")
		picture("timers")
		b.Click(`[aria-label="Cancel <eggs>"]`)
		b.Until("!document.querySelector('#timers .timer') && document.querySelector('#timers').textContent.includes('None is set')")
		b.Click(`nav a[href="#/models"]`)
		b.Until("document.querySelector('#models').textContent.includes('espeak-ng')")
		picture("models")
		clean()
	})

	step("away and back", func(t *testing.T) {
		b.Click(`nav a[href="#/now"]`)
		l.cut()
		b.Until("!document.getElementById('banner').hidden && document.getElementById('banner').textContent.includes(\"can't be reached\")")
		b.Type("#text", "are you there"+consoletest.Enter)
		b.Until("document.getElementById('talk-note').textContent.includes(\"can't be reached\")")
		picture("away")
		h.fetch("PUT", "/api/volume", `{"percent": 40}`) // what the page doesn't hear of
		l.mend()
		b.Until("document.getElementById('banner').hidden && document.getElementById('volume').value === '40'")
		ask()
		clean("ERR_", "net::", "Failed to load resource")
	})

	step("phone", func(t *testing.T) {
		b.Size(360, 740, true)
		for _, scheme := range []string{"light", "dark"} {
			b.Scheme(scheme)
			for _, part := range []string{"now", "chats", "plugins", "timers", "models"} {
				b.Click(`nav a[href="#/` + part + `"]`)
				b.Until("!document.getElementById(arguments[0]).hidden && !(document.querySelector('#' + arguments[0] + ' .body')?.childElementCount === 0)", part)
				b.Eval(nil, "document.querySelectorAll('#' + arguments[0] + ' details:not([open])').forEach(d => { d.open = true })", part)
				b.Until("[...document.querySelectorAll('#' + arguments[0] + ' .body details > div')].every(d => d.childElementCount)", part)
				var width, window, top int
				b.Eval(&top, "return scrollY")
				if top != 0 {
					t.Errorf("%s begins at %d", part, top)
				}
				b.Eval(&width, "return document.documentElement.scrollWidth")
				b.Eval(&window, "return innerWidth")
				if width > window || window != 360 {
					t.Errorf("%s is %d wide in a window of %d", part, width, window)
				}
				picture("phone-" + part + "-" + scheme)
				for what, label := range b.Labels("a, button, input, select, textarea, summary, svg:not([aria-hidden]), [role]") {
					if label == "" && !strings.Contains(what, `role="status"`) && !strings.Contains(what, `role="alert"`) && !strings.Contains(what, `role="timer"`) {
						t.Errorf("%s: no label: %s", part, what)
					}
				}
			}
		}
		b.Size(1200, 900, false)
		b.Click(`nav a[href="#/now"]`)
		b.Until("!document.getElementById('now').hidden")
		picture("dark")
		clean("ERR_", "net::")
	})

	step("a day", func(t *testing.T) { openForADay(t, h, b) })
}

// openForADay tells the page as much as happens in a day, and looks what is left of it.
func openForADay(t *testing.T, h *home, b *consoletest.Browser) {
	heap, nodes, listeners := b.Memory()
	t.Logf("at first: %d bytes of JavaScript, %d nodes, %d listeners", heap, nodes, listeners)
	const turns = 1000
	began := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	for run := uint64(10_000); run < 10_000+turns; run++ {
		at := began.Add(time.Duration(run) * time.Second)
		h.bus.Publish(event.StateChanged{At: at, From: event.Idle, To: event.Listening, Run: run})
		h.bus.Publish(event.Woke{At: at, Word: "okay nabu", Score: 0.9})
		h.bus.Publish(event.Heard{At: at, Run: run, Text: fmt.Sprintf("question %d", run)})
		h.bus.Publish(event.StateChanged{At: at, From: event.Listening, To: event.Speaking, Run: run})
		h.bus.Publish(event.Said{At: at, Run: run, Text: strings.Repeat("It is so. ", 20)})
		h.bus.Publish(event.TurnEnded{Record: event.Record{Run: run, Began: at, Outcome: event.Completed,
			Stages: event.Stages{Recognised: event.Millis(time.Second), FirstSound: event.Millis(2 * time.Second), End: event.Millis(3 * time.Second)},
			Hooks:  []event.HookCall{{Point: "pre_chat", Plugin: "p", Outcome: "missed", Took: event.Millis(500 * time.Millisecond)}}}})
		h.bus.Publish(event.StateChanged{At: at, From: event.Speaking, To: event.Idle, Run: run})
		if run%20 == 19 { // no faster than the page reads
			b.Until("document.getElementById('log').textContent.includes(arguments[0])", fmt.Sprintf("question %d", run))
		}
	}
	b.Until("document.getElementById('state').textContent === 'Idle'")
	var lines, drawn int
	b.Eval(&lines, "return document.getElementById('log').childElementCount")
	b.Eval(&drawn, "return document.getElementById('turns').childElementCount")
	if lines > 100 || drawn > 20 {
		t.Errorf("%d lines and %d turns are kept", lines, drawn)
	}
	after, nodesAfter, listenersAfter := b.Memory()
	t.Logf("after %d turns: %d bytes of JavaScript, %d nodes, %d listeners", turns, after, nodesAfter, listenersAfter)
	if nodesAfter > nodes+5000 || after > heap+8<<20 {
		t.Errorf("the page grows: from %d to %d bytes, %d to %d nodes", heap, after, nodes, nodesAfter)
	}
	minutes, err := time.ParseDuration(os.Getenv("BELLBIRD_PAGE"))
	if err != nil {
		return
	}
	<-time.After(minutes)
	h.fetch("PUT", "/api/volume", `{"percent": 35}`) // it still follows
	b.Until("document.getElementById('banner').hidden && document.getElementById('volume').value === '35'")
	after, nodesAfter, listenersAfter = b.Memory()
	t.Logf("after %v more: %d bytes of JavaScript, %d nodes, %d listeners", minutes, after, nodesAfter, listenersAfter)
}
