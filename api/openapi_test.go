package api_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"bellbird/api"
	"bellbird/event"
)

// A document is what the tests need of openapi.json.
type document struct {
	OpenAPI string
	Paths   map[string]map[string]operation
}

type operation struct {
	OperationID string
	Summary     string
	Parameters  []struct{ Name, In string }
	RequestBody *struct{ Content map[string]any }
	Responses   map[string]struct{ Content map[string]any }
}

const documentURL = "http://bellbird/api/openapi.json"

// loadDocument asks the handler for it.
func loadDocument(t testing.TB, h http.Handler) (document, *jsonschema.Compiler) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/api/openapi.json", nil))
	var d document
	if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	raw, err := jsonschema.UnmarshalJSON(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource(documentURL, raw); err != nil {
		t.Fatal(err)
	}
	return d, c
}

// schemaAt compiles what the document has at a place, given by the steps to it.
func schemaAt(t testing.TB, c *jsonschema.Compiler, steps ...string) *jsonschema.Schema {
	t.Helper()
	for i, s := range steps {
		s = strings.NewReplacer("~", "~0", "/", "~1").Replace(s)
		steps[i] = strings.NewReplacer("{", "%7B", "}", "%7D").Replace(s)
	}
	s, err := c.Compile(documentURL + "#/" + strings.Join(steps, "/"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Every route is described, and every described route exists; so are the parameters of its path, and its body.
func TestEveryRouteIsDescribed(t *testing.T) {
	o := new(desk).options(new(event.Bus))
	d, c := loadDocument(t, api.Handler(o))
	if d.OpenAPI != "3.1.0" {
		t.Errorf("OpenAPI %q", d.OpenAPI)
	}
	var described []string
	ids := make(map[string]bool)
	for path, operations := range d.Paths {
		for method, op := range operations {
			described = append(described, strings.ToUpper(method)+" "+path)
			if op.OperationID == "" || ids[op.OperationID] || op.Summary == "" {
				t.Errorf("%s %s: operationId %q, summary %q", method, path, op.OperationID, op.Summary)
			}
			ids[op.OperationID] = true
			var inPath []string
			for _, p := range op.Parameters {
				if p.In == "path" {
					inPath = append(inPath, "{"+p.Name+"}")
				}
			}
			for _, step := range strings.Split(path, "/") {
				if strings.HasPrefix(step, "{") && !slices.Contains(inPath, step) {
					t.Errorf("%s %s: %s is not described", method, path, step)
				}
			}
			for status, r := range op.Responses {
				for kind := range r.Content {
					schemaAt(t, c, "paths", path, method, "responses", status, "content", kind, "schema")
				}
			}
			if op.RequestBody != nil {
				schemaAt(t, c, "paths", path, method, "requestBody", "content", "application/json", "schema")
			}
		}
	}
	served := api.Patterns(o)
	slices.Sort(described)
	slices.Sort(served)
	for _, r := range served {
		if !slices.Contains(described, r) {
			t.Errorf("%s is not described", r)
		}
	}
	for _, r := range described {
		if !slices.Contains(served, r) {
			t.Errorf("%s is described, but not there", r)
		}
	}
}

// What the handlers take and answer is what is described.
func TestAnswersAreAsDescribed(t *testing.T) {
	o := new(desk).options(new(event.Bus))
	h := api.Handler(o)
	d, c := loadDocument(t, h)
	bodies := map[string]string{
		"PUT /api/volume":                  `{"percent": 30}`,
		"PUT /api/mute":                    `{"muted": true}`,
		"POST /api/timers":                 `{"name": "eggs", "seconds": 90}`,
		"POST /api/ask":                    `{"text": "is it late"}`,
		"POST /api/say":                    `{"text": "it is late"}`,
		"PUT /api/plugins/{name}/enabled":  `true`,
		"PUT /api/plugins/{name}/settings": `{"units": null}`,
		"POST /api/chats":                  `{"name": "c"}`,
		"POST /api/chats/{name}/rename":    `{"name": "c"}`,
		"PUT /api/chats/{name}/settings":   `{"mode": "game"}`,
		"POST /api/vault/setup":            `{"passphrase": "p"}`,
		"POST /api/vault/unlock":           `{"passphrase": "p"}`,
		"POST /api/vault/passphrase":       `{"from": "p", "to": "q"}`,
	}
	for path, operations := range d.Paths {
		for method, op := range operations {
			route := strings.ToUpper(method) + " " + path
			if path == "/api/events" {
				continue // it doesn't end
			}
			if body, ok := bodies[route]; ok != (op.RequestBody != nil) {
				t.Errorf("%s: a body is described: %v, known to this test: %v", route, op.RequestBody != nil, ok)
			} else if ok {
				validate(t, route+", request", schemaAt(t, c, "paths", path, method, "requestBody", "content", "application/json", "schema"), []byte(body))
			}
			target := strings.NewReplacer("/timers/{id}", "/timers/1", "/turns/{id}", "/turns/8", "{name}", "weather").Replace(path)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(strings.ToUpper(method), target, strings.NewReader(bodies[route])))
			switch {
			case w.Code == http.StatusNoContent && op.Responses["204"].Content == nil && len(op.Responses["200"].Content) == 0:
			case w.Code == http.StatusOK && op.Responses["200"].Content["application/json"] != nil:
				validate(t, route, schemaAt(t, c, "paths", path, method, "responses", "200", "content", "application/json", "schema"), w.Body.Bytes())
			case w.Code == http.StatusOK && op.Responses["200"].Content["text/plain"] != nil && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain"):
			default:
				t.Errorf("%s: answers %d %s", route, w.Code, w.Body)
			}
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/api/nothing", nil))
	validate(t, "an error", schemaAt(t, c, "components", "schemas", "Error"), w.Body.Bytes())

	// And what isn't as described is found.
	if s := schemaAt(t, c, "components", "schemas", "Volume"); s.Validate(map[string]any{"percent": json.Number("101"), "muted": false}) == nil {
		t.Error("the schemas say nothing")
	}
}

func validate(t testing.TB, what string, s *jsonschema.Schema, text []byte) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = s.Validate(v)
	}
	if err != nil {
		t.Errorf("%s: %v\n%s", what, err, text)
	}
}
