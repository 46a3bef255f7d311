package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// A hass is Home Assistant, as its programs and users reach it: over its REST interface.
type hass struct {
	t        *testing.T
	checkout string
	kept     string // the directory of what is looked at afterwards
	config   string // its directory
	url      string
	token    string
	cmd      *exec.Cmd // nil: it doesn't run
	ended    chan error
}

// A haState is the state of an entity.
type haState struct {
	Entity     string         `json:"entity_id"`
	State      string         `json:"state"`
	Attributes map[string]any `json:"attributes"`
}

// newHA prepares a Home Assistant that knows nobody yet.
func newHA(t *testing.T, checkout string) *hass {
	t.Helper()
	h := &hass{t: t, checkout: checkout, kept: filepath.Join(checkout, "build/ha"), config: t.TempDir()}
	port := freePort(t)
	h.url = "http://127.0.0.1:" + port
	write(t, filepath.Join(h.config, "configuration.yaml"), fmt.Sprintf(`
homeassistant:
  name: House
  unit_system: metric
http:
  server_host: 127.0.0.1
  server_port: %s
counter:
  double:
  held:
automation: !include automations.yaml
`, port))
	write(t, filepath.Join(h.config, "automations.yaml"), "[]\n")
	if err := os.WriteFile(h.logPath(), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.stop)
	return h
}

func (h *hass) logPath() string { return filepath.Join(h.kept, "home-assistant.log") }

// start starts it, and waits until it answers.
func (h *hass) start() {
	h.t.Helper()
	log, err := os.OpenFile(h.logPath(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	defer log.Close()
	h.cmd = exec.Command(filepath.Join(h.checkout, "deploy/ha/run.sh"), h.config)
	h.cmd.Stdout, h.cmd.Stderr = log, log
	if err := h.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan<- error) { ended <- cmd.Wait() }(h.cmd, h.ended)
	patiently(h.t, "Home Assistant's beginning", func() bool {
		select {
		case err := <-h.ended:
			h.cmd = nil
			h.t.Fatalf("Home Assistant ended: %v: see %s", err, h.logPath())
		default:
		}
		if h.token == "" { // nobody may ask yet
			r, err := http.Get(h.url + "/api/onboarding")
			if err != nil {
				return false
			}
			r.Body.Close()
			return r.StatusCode == http.StatusOK
		}
		var c struct{ State string }
		return h.ask(http.MethodGet, "/api/config", nil, &c) == nil && c.State == "RUNNING"
	})
}

// stop has it write down what it knows, and waits.
func (h *hass) stop() {
	if h.cmd == nil {
		return
	}
	h.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-h.ended:
	case <-time.After(time.Minute):
		h.t.Error("Home Assistant doesn't end")
		h.cmd.Process.Kill()
		<-h.ended
	}
	h.cmd = nil
}

// restart starts it again, and returns how long after it said that it is there again everything was as it should be.
func (h *hass) restart(broker string, well func() bool) time.Duration {
	h.t.Helper()
	births := make(chan time.Time, 1)
	client := paho.NewClient(paho.NewClientOptions().AddBroker("tcp://" + broker).SetClientID("test"))
	await := func(token paho.Token) {
		h.t.Helper()
		if !token.WaitTimeout(30*time.Second) || token.Error() != nil {
			h.t.Fatal(token.Error())
		}
	}
	h.stop()
	await(client.Connect())
	defer client.Disconnect(0)
	await(client.Subscribe("homeassistant/status", 1, func(_ paho.Client, m paho.Message) {
		if string(m.Payload()) == "online" && !m.Retained() {
			select {
			case births <- time.Now():
			default:
			}
		}
	}))
	h.start()
	var born time.Time
	select {
	case born = <-births:
	case <-time.After(time.Minute):
		h.t.Fatal("Home Assistant doesn't say that it is there again")
	}
	h.until("everything again", well)
	return time.Since(born)
}

func (h *hass) until(what string, yes func() bool) {
	h.t.Helper()
	patiently(h.t, what, yes)
}

// ask sends a request, with in as its JSON, and reads the answer into out.
func (h *hass) ask(method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, body)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+h.token)
	r.Header.Set("Content-Type", "application/json")
	return answer(r, out)
}

func answer(r *http.Request, out any) error {
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", r.Method, r.URL.Path, resp.Status, text)
	}
	if s, ok := out.(*string); ok {
		*s = string(text)
		return nil
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

func (h *hass) must(method, path string, in, out any) {
	h.t.Helper()
	if err := h.ask(method, path, in, out); err != nil {
		h.t.Fatal(err)
	}
}

// onboard makes the first user, who is asked for when it is new.
func (h *hass) onboard() {
	h.t.Helper()
	var code struct {
		AuthCode string `json:"auth_code"`
	}
	client := h.url + "/"
	h.must(http.MethodPost, "/api/onboarding/users", map[string]string{
		"client_id": client, "name": "Somebody", "username": "somebody", "password": "of the test", "language": "en",
	}, &code)
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code.AuthCode}, "client_id": {client}}
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.url+"/auth/token", strings.NewReader(form.Encode()))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	var token struct {
		AccessToken string `json:"access_token"`
	}
	if err := answer(r, &token); err != nil {
		h.t.Fatal(err)
	}
	h.token = token.AccessToken
}

// addBroker sets up the MQTT integration, as its dialog does.
func (h *hass) addBroker(addr string) {
	h.t.Helper()
	var flow struct {
		ID     string `json:"flow_id"`
		Type   string
		Errors map[string]string
	}
	h.must(http.MethodPost, "/api/config/config_entries/flow", map[string]string{"handler": "mqtt"}, &flow)
	host, port, _ := strings.Cut(addr, ":")
	h.must(http.MethodPost, "/api/config/config_entries/flow/"+flow.ID, map[string]any{"broker": host, "port": json.Number(port)}, &flow)
	if flow.Type != "create_entry" {
		h.t.Fatalf("the MQTT integration is not set up: %s, %v", flow.Type, flow.Errors)
	}
}

// do calls a service for an entity, with further data: names and values.
func (h *hass) do(service, entity string, data ...any) {
	h.t.Helper()
	in := map[string]any{"entity_id": entity}
	for i := 0; i+1 < len(data); i += 2 {
		in[data[i].(string)] = data[i+1]
	}
	h.must(http.MethodPost, "/api/services/"+strings.Replace(service, ".", "/", 1), in, nil)
}

func (h *hass) get(entity string) (s haState, err error) {
	err = h.ask(http.MethodGet, "/api/states/"+entity, nil, &s)
	return s, err
}

// await waits until an entity is as it should be.
func (h *hass) await(entity string, well func(haState) bool) {
	h.t.Helper()
	var last haState
	var err error
	defer func() {
		if h.t.Failed() {
			h.t.Logf("%s is %q, %v, error %v", entity, last.State, last.Attributes, err)
		}
	}()
	h.until(entity, func() bool {
		last, err = h.get(entity)
		return err == nil && well(last)
	})
}

func (h *hass) is(entity, state string) {
	h.t.Helper()
	h.await(entity, func(s haState) bool { return s.State == state })
}

// states are those of the entities of a device, by their ids.
func (h *hass) states(id string) map[string]haState {
	h.t.Helper()
	var all []haState
	h.must(http.MethodGet, "/api/states", nil, &all)
	of := make(map[string]haState)
	for _, s := range all {
		if strings.Contains(s.Entity, "."+id+"_") {
			of[s.Entity] = s
		}
	}
	return of
}

// automate makes automations that count the gestures of a button: a double press by the state of its entity, as the
// documentation has it, and a long one by the device trigger.
func (h *hass) automate(button string) {
	h.t.Helper()
	var device string
	h.must(http.MethodPost, "/api/template", map[string]string{"template": `{{ device_id("` + button + `") }}`}, &device)
	count := func(counter string) []map[string]any {
		return []map[string]any{{"action": "counter.increment", "target": map[string]string{"entity_id": "counter." + counter}}}
	}
	for name, a := range map[string]map[string]any{
		"double": {
			"alias": "double", "triggers": []map[string]any{{"trigger": "state", "entity_id": button, "not_from": "unavailable"}},
			"conditions": []string{"{{ trigger.to_state.attributes.event_type == 'double' }}"}, "actions": count("double"),
		},
		"held": {
			"alias": "held", "actions": count("held"),
			"triggers": []map[string]any{{"trigger": "device", "domain": "mqtt", "device_id": device, "type": "button_long_press", "subtype": "button_1"}},
		},
	} {
		h.must(http.MethodPost, "/api/config/automation/config/"+name, a, nil)
		h.is("automation."+name, "on")
	}
}
