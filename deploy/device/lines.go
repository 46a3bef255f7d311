package device

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// findChip asks the machine where its GPIO chip is.
func findChip(ctx context.Context, m *Machine, path string) (string, error) {
	c, err := dial(ctx, m, path)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	answers := json.NewDecoder(c)
	if err := answers.Decode(new(any)); err != nil { // its greeting
		return "", fmt.Errorf("qmp: %w", err)
	}
	var found struct {
		Return []struct{ Name, Type string }
	}
	for _, ask := range []string{`{"execute":"qmp_capabilities"}`, `{"execute":"qom-list","arguments":{"path":"/machine/unattached"}}`} {
		if _, err := fmt.Fprintln(c, ask); err != nil {
			return "", fmt.Errorf("qmp: %w", err)
		}
		var raw json.RawMessage
		if err := answers.Decode(&raw); err != nil {
			return "", fmt.Errorf("qmp: %w", err)
		}
		_ = json.Unmarshal(raw, &found) // the first answer is another one
	}
	for _, child := range found.Return {
		if child.Type == "child<pl061>" {
			return "/machine/unattached/" + child.Name, nil
		}
	}
	return "", fmt.Errorf("qmp: the machine has no PL061")
}

// dial connects to a socket of the machine's, which may take a moment to be there.
func dial(ctx context.Context, m *Machine, path string) (c net.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	err = m.retry(ctx, func() error {
		c, err = new(net.Dialer).DialContext(ctx, "unix", path)
		return err
	})
	return c, err
}

// lines are the wires of the GPIO chip, seen from outside, over qemu's test protocol.
type lines struct {
	chip    string
	conn    net.Conn
	mu      sync.Mutex // of a question until its answer
	answers chan string
	done    chan struct{}
}

// openLines connects to the chip. moved is told each change of a line that the device drives, in order, by one goroutine.
func openLines(ctx context.Context, m *Machine, path, chip string, moved func(line int, high bool)) (*lines, error) {
	c, err := dial(ctx, m, path)
	if err != nil {
		return nil, err
	}
	l := &lines{chip: chip, conn: c, answers: make(chan string), done: make(chan struct{})}
	go l.read(moved)
	if err := l.ask("irq_intercept_out " + chip); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *lines) read(moved func(int, bool)) {
	defer close(l.done)
	for s := bufio.NewScanner(l.conn); s.Scan(); {
		var way string
		var line int
		if n, _ := fmt.Sscanf(s.Text(), "IRQ %s %d", &way, &line); n == 2 {
			moved(line, way == "raise")
			continue
		}
		select {
		case l.answers <- s.Text():
		case <-time.After(10 * time.Second): // nobody asked
		}
	}
}

// ask sends a command and waits until it is done.
func (l *lines) ask(command string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := fmt.Fprintln(l.conn, command); err != nil {
		return fmt.Errorf("qtest: %w", err)
	}
	select {
	case answer := <-l.answers:
		if !strings.HasPrefix(answer, "OK") {
			return fmt.Errorf("qtest: %s: %s", command, answer)
		}
		return nil
	case <-l.done:
		return fmt.Errorf("qtest: %s: the machine has ended", command)
	}
}

func (l *lines) set(line int, high bool) error {
	level := 0
	if high {
		level = 1
	}
	return l.ask(fmt.Sprintf("set_irq_in %s unnamed-gpio-in %d %d", l.chip, line, level))
}

func (l *lines) close() {
	l.conn.Close()
	<-l.done
}
