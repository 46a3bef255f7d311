// Package consoletest drives a real browser in tests: Chromium, without a window, by way of chromedriver, which speaks
// W3C WebDriver. It does what the tests of the console need, and is no library for more.
package consoletest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Required is the environment variable that makes it a failure that there is no browser.
const Required = "BELLBIRD_BROWSER"

const patience = 30 * time.Second // for what should come at once

// element is the key of an element's reference (WebDriver, section 12).
const element = "element-6066-11e4-a52e-4f735466cecf"

// Keys, for Type and Press.
const (
	Enter = "\ue007"
	Tab   = "\ue004"
)

// A Browser is a browser with one page. What goes wrong with it ends the test.
type Browser struct {
	T       *testing.T // the test that it is used in, which may be a part of the one that opened it
	session string     // its address
}

// Open starts a browser, which ends with the test. Without Chromium the test is skipped.
func Open(t *testing.T) *Browser {
	t.Helper()
	driver, err := exec.LookPath("chromedriver")
	var chromium string
	if err == nil {
		chromium, err = exec.LookPath("chromium")
	}
	if err != nil {
		if os.Getenv(Required) != "" {
			t.Fatal(err)
		}
		t.Skipf(`no browser: %v: "make test-console" installs one`, err)
	}
	// Not t.Context(), which ends before the cleanup that says goodbye.
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, driver, "--port=0")
	// It ends its browser by itself, which takes a moment.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was interrupted
	})
	port := regexp.MustCompile(`successfully on port (\d+)`)
	b := &Browser{T: t}
	lines := bufio.NewScanner(out)
	for b.session == "" && lines.Scan() {
		if m := port.FindStringSubmatch(lines.Text()); m != nil {
			b.session = "http://127.0.0.1:" + m[1] + "/session"
		}
	}
	if b.session == "" {
		t.Fatal("chromedriver did not say where it listens")
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // until it ends

	args := []string{
		"--headless=new", "--window-size=1200,900", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run", "--disable-default-apps",
		"--user-data-dir=" + t.TempDir(),
	}
	if os.Getuid() == 0 {
		args = append(args, "--no-sandbox") // its sandbox isn't for root
	}
	var made struct{ SessionID string }
	b.do(http.MethodPost, "", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"browserName":             "chrome",
		"goog:chromeOptions":      map[string]any{"binary": chromium, "args": args},
		"goog:loggingPrefs":       map[string]string{"browser": "ALL"},
		"unhandledPromptBehavior": "accept",
	}}}, &made)
	b.session += "/" + made.SessionID
	t.Cleanup(func() {
		if err := b.try(http.MethodDelete, "", nil, nil); err != nil {
			t.Error(err)
		}
	})
	return b
}

// do sends a command, and decodes what its answer has for a value.
func (b *Browser) do(method, path string, body, into any) {
	b.T.Helper()
	if err := b.try(method, path, body, into); err != nil {
		b.T.Fatalf("browser: %v", err)
	}
}

func (b *Browser) try(method, path string, body, into any) error {
	var r io.Reader
	if method == http.MethodPost {
		if body == nil {
			body = struct{}{}
		}
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		r = bytes.NewReader(text)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, b.session+path, r)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct{ Value json.RawMessage }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if resp.StatusCode != http.StatusOK {
		var failure struct{ Error, Message string }
		_ = json.Unmarshal(answer.Value, &failure)
		first, _, _ := strings.Cut(failure.Message, "\n")
		return fmt.Errorf("%s %s: %s: %s", method, path, failure.Error, first)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer.Value, into)
}

// Visit loads a page.
func (b *Browser) Visit(url string) {
	b.T.Helper()
	b.do(http.MethodPost, "/url", map[string]string{"url": url}, nil)
}

// Eval runs the body of a JavaScript function, and decodes what it returns. A promise is waited for.
func (b *Browser) Eval(into any, script string, args ...any) {
	b.T.Helper()
	if args == nil {
		args = []any{}
	}
	b.do(http.MethodPost, "/execute/sync", map[string]any{"script": script, "args": args}, into)
}

// Until waits until a JavaScript expression is true; while it throws, for want of an element, it isn't. It may name args as
// arguments[0] and so on.
func (b *Browser) Until(expression string, args ...any) {
	b.T.Helper()
	deadline := time.After(patience)
	for {
		var is bool
		b.Eval(&is, "try { return Boolean("+expression+") } catch { return false }", args...)
		if is {
			return
		}
		select {
		case <-deadline:
			var text string
			b.Eval(&text, "return document.body.innerText")
			b.T.Fatalf("it never came to that: %s %q; the page says\n%s", expression, args, text)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// find waits until there is such an element that can be seen.
func (b *Browser) find(css string) string {
	b.T.Helper()
	b.Until("document.querySelector(arguments[0])?.checkVisibility()", css)
	var ref map[string]string
	b.do(http.MethodPost, "/element", map[string]string{"using": "css selector", "value": css}, &ref)
	return "/element/" + ref[element]
}

// Click clicks the first element that fits, as a user does. What covers it is an error.
func (b *Browser) Click(css string) {
	b.T.Helper()
	b.do(http.MethodPost, b.find(css)+"/click", nil, nil)
}

// Type types into the first element that fits, instead of what is there.
func (b *Browser) Type(css, text string) {
	b.T.Helper()
	at := b.find(css)
	b.do(http.MethodPost, at+"/clear", nil, nil)
	b.do(http.MethodPost, at+"/value", map[string]string{"text": text}, nil)
}

// Press presses a key, wherever the focus is.
func (b *Browser) Press(key string) {
	b.T.Helper()
	b.do(http.MethodPost, "/actions", map[string]any{"actions": []map[string]any{{"type": "key", "id": "keys", "actions": []map[string]string{
		{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key},
	}}}}, nil)
}

// Labels are the names that assistive technology has for all elements that fit and can be seen, by a short description
// of each.
func (b *Browser) Labels(css string) map[string]string {
	b.T.Helper()
	var refs []map[string]string
	b.Eval(&refs, "return [...document.querySelectorAll(arguments[0])].filter(e => e.checkVisibility())", css)
	labels := make(map[string]string)
	for i, ref := range refs {
		var label, what string
		b.do(http.MethodGet, "/element/"+ref[element]+"/computedlabel", nil, &label)
		b.Eval(&what, "return arguments[0].cloneNode(false).outerHTML", ref)
		labels[fmt.Sprintf("%d %s", i, what)] = label
	}
	return labels
}

// Screenshot writes what can be seen into a file.
func (b *Browser) Screenshot(path string) {
	b.T.Helper()
	var text string
	b.do(http.MethodGet, "/screenshot", nil, &text)
	png, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(path, png, 0o644)
	}
	if err != nil {
		b.T.Fatal(err)
	}
}

// devTools sends a command of the DevTools protocol, for what WebDriver hasn't.
func (b *Browser) devTools(cmd string, params map[string]any, into any) {
	b.T.Helper()
	if params == nil {
		params = map[string]any{}
	}
	b.do(http.MethodPost, "/goog/cdp/execute", map[string]any{"cmd": cmd, "params": params}, into)
}

// Size makes the page as large as a screen of so many CSS pixels, a phone's if mobile is set.
func (b *Browser) Size(width, height int, mobile bool) {
	b.T.Helper()
	b.devTools("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}, nil)
}

// Scheme has the user prefer "light" or "dark".
func (b *Browser) Scheme(name string) {
	b.T.Helper()
	b.devTools("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": name}}}, nil)
}

// Memory is what the page takes once what isn't used any more is collected: bytes of its JavaScript, and how many nodes
// and listeners there are.
func (b *Browser) Memory() (heap, nodes, listeners int) {
	b.T.Helper()
	b.devTools("Performance.enable", nil, nil)
	b.devTools("HeapProfiler.collectGarbage", nil, nil)
	var got struct {
		Metrics []struct {
			Name  string
			Value float64
		}
	}
	b.devTools("Performance.getMetrics", nil, &got)
	by := make(map[string]int)
	for _, m := range got.Metrics {
		by[m.Name] = int(m.Value)
	}
	return by["JSHeapUsedSize"], by["Nodes"], by["JSEventListeners"]
}

// Complaints are the errors and warnings that the page had since they were last asked for, such as what the Content
// Security Policy forbade.
func (b *Browser) Complaints() []string {
	b.T.Helper()
	var entries []struct{ Level, Message string }
	b.do(http.MethodPost, "/se/log", map[string]string{"type": "browser"}, &entries)
	var all []string
	for _, e := range entries {
		if e.Level == "SEVERE" || e.Level == "WARNING" {
			all = append(all, e.Message)
		}
	}
	return all
}
