package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/dialog"
	"bellbird/tools"
)

func TestCollision(t *testing.T) {
	t.Parallel()
	set, err := tools.NewSet(nil, tools.Tool{Spec: dialog.ToolSpec{Name: "echo"}})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	offers := make(chan error, 10)
	o := peer("good")
	o.Name, o.Allow = "kitchen", []string{"echo", "sum"}
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	o.Put = func(owner string, all ...tools.Tool) error {
		err := set.Put(owner, all...)
		offers <- err
		return err
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	err = <-offers
	if err == nil || !strings.Contains(err.Error(), "the appliance") || !strings.Contains(err.Error(), "kitchen") || set.Owner("echo") != "the appliance" {
		t.Errorf("a name that is taken: %v, echo is %s's", err, set.Owner("echo"))
	}
	if len(set.Specs()) != 2 {
		t.Errorf("tools %v", set.Specs())
	}
	cancel()
	<-done
	if n := strings.Count(log.String(), "the appliance and the MCP server kitchen"); n != 1 {
		t.Errorf("it is in the log %d times: %s", n, &log)
	}
}

func TestOptions(t *testing.T) {
	put := func(string, ...tools.Tool) error { return nil }
	for want, o := range map[string]Options{
		"name":       {Command: []string{"x"}, Put: put},
		"a command":  {Name: "a", Put: put},
		"not both":   {Name: "a", Command: []string{"x"}, URL: "http://x", Put: put},
		"address":    {Name: "a", URL: "x", Put: put},
		"token_file": {Name: "a", Command: []string{"x"}, TokenFile: "x", Put: put},
		"takes":      {Name: "a", Command: []string{"x"}},
		"timeout":    {Name: "a", Command: []string{"x"}, Timeout: -1, Put: put},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", o, err, want)
		}
	}
}

func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Options{Name: "a", Command: []string{"x"}, Put: func(string, ...tools.Tool) error { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var at []time.Duration
		ctx, cancel := context.WithCancel(t.Context())
		s.dial = func() (*link, error) {
			at = append(at, time.Since(began))
			switch len(at) {
			case 5: // this one works, for a while
				time.Sleep(2 * time.Minute)
			case 16:
				cancel()
			}
			return nil, errors.New("not there")
		}
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
		var gaps []time.Duration
		for i := range at[1:] {
			gaps = append(gaps, at[i+1]-at[i])
		}
		if got, want := fmt.Sprint(gaps), "[1s 2s 4s 8s 2m1s 2s 4s 8s 16s 32s 1m4s 2m8s 4m16s 5m0s 5m0s]"; got != want {
			t.Errorf("gaps %s\nwant %s", got, want)
		}
	})
}
