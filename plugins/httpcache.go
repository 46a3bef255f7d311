package plugins

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"time"
)

// What is cached is fetched in the background, so that no hook has to wait for the network: whoever asks gets the last
// good response at once, and if that is too old, a new one is fetched for those who ask later. Nobody asking, nothing is
// fetched.

// A cached response belongs to one plugin and one request.
type cached struct {
	good     *Response // nil: there is none yet
	since    time.Time // when good came
	tried    time.Time
	asked    time.Time // for it, the last time
	fetching bool
}

const (
	maxCached = 16               // requests of one plugin
	minEvery  = 30 * time.Second // between two tries
	forgotten = time.Hour        // after which one that nobody asks for makes room
)

func (n *Network) fromCache(m *Manifest, r Request, host string) (*Response, error) {
	every := max(r.Every, minEvery)
	r.Every = 0
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	key := string(sum[:])

	n.mu.Lock()
	defer n.mu.Unlock()
	mine := n.cached[m.Name]
	if mine == nil {
		mine = make(map[string]*cached)
		n.cached[m.Name] = mine
	}
	now := time.Now()
	c := mine[key]
	if c == nil {
		if len(mine) >= maxCached {
			maps.DeleteFunc(mine, func(_ string, c *cached) bool { return !c.fetching && now.Sub(c.asked) > forgotten })
		}
		if len(mine) >= maxCached {
			return nil, fmt.Errorf("http: a plugin can have %d requests cached, and this would be one more", maxCached)
		}
		c = new(cached)
		mine[key] = c
	}
	c.asked = now
	wait := every
	if c.since.Before(c.tried) { // the last try failed
		wait = minEvery
	}
	if !c.fetching && now.Sub(c.tried) >= wait && n.ctx.Err() == nil {
		c.fetching, c.tried = true, now
		n.wg.Go(func() { n.refresh(n.ctx, m, r, c, host) })
	}
	if c.good == nil {
		return nil, nil
	}
	response := *c.good
	response.Age = now.Sub(c.since)
	return &response, nil
}

// refresh fetches what is cached. What isn't good doesn't replace what is.
func (n *Network) refresh(ctx context.Context, m *Manifest, r Request, c *cached, host string) {
	response, err := n.do(ctx, m, r)
	if err == nil && (response.Status < 200 || response.Status > 299) {
		err = fmt.Errorf("http: %q: status %d", host, response.Status)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	c.fetching = false
	if err != nil {
		if ctx.Err() == nil {
			n.log.Warn("a plugin's request in the background", "plugin", m.Name, "err", err)
		}
		return
	}
	c.good, c.since = response, time.Now()
}
