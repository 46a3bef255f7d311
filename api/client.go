package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// A Client speaks to a running appliance over its socket.
type Client struct{ http http.Client }

// ErrNotRunning is returned when nobody serves the socket.
var ErrNotRunning = errors.New(`the appliance is not running: start it with "bellbird run"`)

// Dial returns a client of the socket at path. It doesn't connect yet.
func Dial(path string) *Client {
	return &Client{http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			d := net.Dialer{Timeout: 5 * time.Second}
			c, err := d.DialContext(ctx, "unix", path)
			switch {
			case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ECONNREFUSED):
				return nil, fmt.Errorf("%w (there is no appliance at %s)", ErrNotRunning, path)
			case err != nil:
				return nil, fmt.Errorf("local socket: %w", err)
			}
			return c, nil
		},
	}}}
}

// Do sends a request with in as its body, unless that is nil, and decodes the answer into out, unless that is nil. What
// the appliance refuses is an *Error.
func (c *Client) Do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	resp, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil || resp.StatusCode == http.StatusNoContent {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

func (c *Client) send(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://bellbird"+path, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if errors.Is(err, ErrNotRunning) {
		return nil, errors.Unwrap(err) // without the address, which says nothing
	} else if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	var answer struct{ Error string }
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxBody)).Decode(&answer); err != nil || answer.Error == "" {
		answer.Error = resp.Status
	}
	return nil, &Error{resp.StatusCode, answer.Error}
}

// Events calls f with the name and the data of each event that the appliance streams, until ctx is done or f returns an
// error, which it then returns. begun, unless nil, is called when no event is missed any more.
func (c *Client) Events(ctx context.Context, path string, f func(kind string, data []byte) error, begun func()) error {
	resp, err := c.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if begun != nil {
		begun()
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxBody)
	kind := ""
	for lines.Scan() {
		if k, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kind = k
		} else if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := f(kind, []byte(data)); err != nil {
				return err
			}
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return errors.New("the appliance has ended")
}
