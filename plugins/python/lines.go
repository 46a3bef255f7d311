package python

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// lines takes what a worker prints, and puts so much of it into the log as a log can take. Whoever prints more than that
// waits: who reads it would have nothing else to do.
type lines struct {
	log *slog.Logger

	mu      sync.Mutex
	begun   []byte // of a line
	until   time.Time
	lines   int // in this second
	bytes   int
	dropped int
}

const (
	longestLine   = 1000
	linesInSecond = 20
	bytesInSecond = 1 << 20
)

func newLines(log *slog.Logger) *lines { return &lines{log: log} }

// Write never fails.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.After(l.until) {
		l.tellDropped()
		l.until, l.lines, l.bytes = now.Add(time.Second), 0, 0
	}
	for rest := p; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		rest = after
		if room := longestLine - len(l.begun); room > 0 {
			l.begun = append(l.begun, line[:min(len(line), room)]...)
		}
		if ended {
			l.tell()
		}
	}
	if l.bytes += len(p); l.bytes > bytesInSecond {
		timer := time.NewTimer(l.until.Sub(now))
		defer timer.Stop()
		<-timer.C
	}
	return len(p), nil
}

// tell puts a line into the log.
func (l *lines) tell() {
	text := strings.TrimRight(strings.ToValidUTF8(string(l.begun), "\ufffd"), "\r ")
	l.begun = l.begun[:0]
	switch {
	case text == "":
	case l.lines >= linesInSecond:
		l.dropped++
	default:
		l.lines++
		l.log.Info("plugin says", "text", text)
	}
}

func (l *lines) tellDropped() {
	if l.dropped > 0 {
		l.log.Warn("a plugin says more than can be kept", "lines", l.dropped)
		l.dropped = 0
	}
}

// limited writes the beginning, and swallows the rest.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	if _, err := l.w.Write(p[:n]); err != nil {
		return 0, err
	}
	return len(p), nil
}
