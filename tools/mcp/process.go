package mcp

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxMessage bounds what a server may send at once, in bytes. One that sends more is disconnected: it isn't read to see
// whether it ends.
const maxMessage = 4 << 20

// How long a process has to end when its input is closed, and when it is told to.
const (
	endTime  = 2 * time.Second
	termTime = time.Second
)

// start starts the server's command in a process group of its own, so that nothing is left of it in the end.
func (s *Server) start() (*link, error) {
	cmd := exec.Command(s.o.Command[0], s.o.Command[1:]...)
	cmd.Dir = s.o.Dir
	for _, name := range []string{"PATH", "HOME", "LANG", "TZ"} {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	for name, v := range s.o.Env {
		cmd.Env = append(cmd.Env, name+"="+v)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = &lineLog{log: s.log}
	cmd.WaitDelay = endTime // what it has left behind may hold its output open
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	end := sync.OnceFunc(func() {
		stdin.Close()
		ended := make(chan struct{})
		go func() {
			io.Copy(io.Discard, stdout)
			close(ended)
		}()
		group := -cmd.Process.Pid // it keeps its number until it is waited for
		if !closedWithin(ended, endTime) {
			syscall.Kill(group, syscall.SIGTERM)
			closedWithin(ended, termTime)
		}
		syscall.Kill(group, syscall.SIGKILL)
		err := cmd.Wait()
		s.log.Debug("mcp server's process has ended", "pid", cmd.Process.Pid, "result", fmt.Sprint(err))
	})
	// The pipes are closed by end, and by nobody before.
	return &link{&sdk.IOTransport{Reader: io.NopCloser(stdout), Writer: stdin, MaxLineLength: maxMessage}, end}, nil
}

func closedWithin(c <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-t.C:
		return false
	}
}

// lineLog logs what is written to it, line by line, at debug level, and no more than a bounded part of it.
type lineLog struct {
	log     *slog.Logger
	line    []byte
	written int
}

// Bounds of what is logged of one process, in bytes: of a line, and of all.
const (
	maxLogLine = 1 << 10
	maxLog     = 256 << 10
)

func (l *lineLog) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 && l.written <= maxLog {
		i := bytes.IndexByte(p, '\n')
		part := p
		if i >= 0 {
			part = p[:i]
		}
		l.line = append(l.line, part[:min(len(part), maxLogLine-len(l.line))]...)
		if i < 0 {
			break
		}
		p = p[i+1:]
		l.flush()
	}
	return n, nil
}

func (l *lineLog) flush() {
	l.written += len(l.line) + 1
	if text := strings.TrimSpace(strings.ToValidUTF8(string(l.line), "?")); text != "" {
		l.log.Debug("mcp server says", "text", text)
	}
	if l.written > maxLog {
		l.log.Debug("mcp server says too much: the rest is left out")
	}
	l.line = l.line[:0]
}
