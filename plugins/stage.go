package plugins

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"bellbird/hooks"
)

// A Use is a power that a plugin uses in a trial.
type Use struct {
	Call    string         `json:"call"` // such as "tts.set_voice"
	Args    []any          `json:"args"`
	Kwargs  map[string]any `json:"kwargs"`
	Returns any            `json:"returns"`
	Error   string         `json:"error"` // it fails
}

// An Exchange is a request that a plugin makes in a trial, and its answer.
type Exchange struct {
	Method string `json:"method"` // default GET
	URL    string `json:"url"`
	Sent   any    `json:"sent"` // the body that it should have: a string, or else JSON; nil: any

	Status  int               `json:"status"` // default 200
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	JSON    any               `json:"json"`    // in place of a body
	Age     float64           `json:"age"`     // in seconds, of what was cached
	Nothing bool              `json:"nothing"` // nothing is cached yet
	Error   string            `json:"error"`   // there is no answer
}

// A stage plays the appliance and the network in a trial, and notes what goes otherwise than it says.
type stage struct {
	trial Trial

	mu     sync.Mutex
	used   int          // of the uses
	made   map[int]bool // of the exchanges
	faults []string
}

var _ Web = (*stage)(nil)

func (s *stage) fault(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, err.Error())
	return err
}

// watch notes the errors of a handler, if they don't come of what was noted before.
func (s *stage) watch(f hooks.Func) hooks.Func {
	return func(ctx context.Context, e *hooks.Event) error {
		err := f(ctx, e)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil && len(s.faults) == 0 {
			s.faults = append(s.faults, err.Error())
		}
		return err
	}
}

// end returns the faults, when all is done.
func (s *stage) end() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.trial.System[s.used:] {
		s.faults = append(s.faults, fmt.Sprintf("it did not call system.%s", u.Call))
	}
	for i, x := range s.trial.HTTP {
		if !s.made[i] {
			s.faults = append(s.faults, "it did not ask for "+x.URL)
		}
	}
	return s.faults
}

// system has all powers.
func (s *stage) system() (*System, error) {
	do := make(map[string]Func)
	for name := range powers {
		do[name] = func(_ context.Context, c *Call) (any, error) { return s.use(name, c) }
	}
	for _, u := range s.trial.System {
		if _, err := u.bound(); err != nil {
			return nil, fmt.Errorf("system: %s: %w", u.Call, err)
		}
	}
	return NewSystem(do)
}

// bound are the arguments of a use by name.
func (u Use) bound() (map[string]any, error) {
	params, ok := powers[u.power()]
	if !ok {
		return nil, errors.New("there is no such power")
	}
	return bind(params, u.Args, u.Kwargs)
}

func (u Use) power() string { return cmp.Or(otherNames[u.Call], u.Call) }

func (s *stage) use(name string, c *Call) (any, error) {
	s.mu.Lock()
	at := s.used
	s.used = min(at+1, len(s.trial.System))
	s.mu.Unlock()
	if at == len(s.trial.System) {
		return nil, s.fault("it calls system.%s(%s), which is not in the trial", name, asJSON(c.args))
	}
	u := s.trial.System[at]
	want, err := u.bound()
	if err != nil {
		return nil, err
	}
	if u.power() != name || asJSON(want) != asJSON(c.args) {
		return nil, s.fault("it calls system.%s with %s, not system.%s with %s", name, asJSON(c.args), u.Call, asJSON(want))
	}
	if u.Error != "" {
		return nil, errors.New(u.Error)
	}
	return u.Returns, nil
}

// Fetch answers what the trial has an answer for.
func (s *stage) Fetch(_ context.Context, m *Manifest, r Request) (*Response, error) {
	if _, err := r.check(m); err != nil {
		return nil, s.fault("%w", err)
	}
	for i, x := range s.trial.HTTP {
		if cmp.Or(x.Method, http.MethodGet) != r.Method || x.URL != r.URL {
			continue
		}
		s.mu.Lock()
		if s.made == nil {
			s.made = make(map[int]bool)
		}
		s.made[i] = true
		s.mu.Unlock()
		if x.Sent != nil && !x.sent(r.Body) {
			return nil, s.fault("it sends %q to %s, not %s", r.Body, x.URL, asJSON(x.Sent))
		}
		switch {
		case x.Error != "":
			return &Response{Error: x.Error}, nil
		case x.Nothing:
			return nil, nil
		}
		headers := maps.Clone(x.Headers)
		body := x.Body
		if x.JSON != nil {
			body = asJSON(x.JSON)
		}
		return &Response{Status: cmp.Or(x.Status, http.StatusOK), Headers: headers, Body: body, Age: time.Duration(x.Age * float64(time.Second))}, nil
	}
	return nil, s.fault("it makes a request which is not in the trial: %s %s", strings.ToUpper(r.Method), r.URL)
}

// sent compares a body with what is expected.
func (x Exchange) sent(body string) bool {
	if text, ok := x.Sent.(string); ok {
		return text == body
	}
	var v any
	return json.Unmarshal([]byte(body), &v) == nil && asJSON(v) == asJSON(x.Sent)
}
