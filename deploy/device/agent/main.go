// Agent is what the host reaches of the virtual device: it runs scripts there, writes files, passes requests on to the
// appliance's socket, and notes what the appliance tells its service manager. It is no part of the appliance, and trusts
// whoever can reach it.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

const (
	address = ":7000" // deploy/device forwards a port of the host to it
	socket  = "/run/bellbird/bellbird.sock"
	notify  = "/run/notify"     // what NOTIFY_SOCKET has to name
	notes   = "/run/notify.log" // a line for each that was told: the seconds since the machine started, and the text, quoted
)

func main() {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /run", runScript)
	mux.HandleFunc("PUT /file", writeFile)
	mux.HandleFunc("POST /mark", markFacts)
	mux.Handle("/api/", appliance())
	if err := notices(); err != nil {
		log.Fatal("agent: ", err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		log.Fatal("agent: ", err)
	}
	fmt.Println("device: the agent listens")
	log.Fatal("agent: ", http.Serve(l, mux))
}

// runScript runs the request's body in a shell until it ends or the request does, and streams what it prints. Its exit
// code is the trailer Exit; -1 is one that was killed.
func runScript(w http.ResponseWriter, r *http.Request) {
	script, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Trailer", "Exit")
	out := flushed{w, http.NewResponseController(w)}
	cmd := exec.CommandContext(r.Context(), "/bin/sh", "-c", string(script))
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if _, err := out.Write(nil); err != nil { // the header, so that the host knows that it runs
		return
	}
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		fmt.Fprintln(out, "agent:", err)
		w.Header().Set("Exit", "127")
		return
	}
	w.Header().Set("Exit", strconv.Itoa(cmd.ProcessState.ExitCode()))
}

// writeFile writes the request's body to a path of the device.
func writeFile(w http.ResponseWriter, r *http.Request) {
	f, err := os.Create(r.URL.Query().Get("path"))
	if err == nil {
		_, err = io.Copy(f, r.Body)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// markFacts writes the appliance's facts into the kernel's trace as they come, until the request ends.
func markFacts(w http.ResponseWriter, r *http.Request) {
	trace, err := os.OpenFile("/sys/kernel/tracing/trace_marker", os.O_WRONLY, 0)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer trace.Close()
	ask, err := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://localhost/api/events", nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer, err := transport().RoundTrip(ask)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	if _, err := (flushed{w, http.NewResponseController(w)}).Write(nil); err != nil {
		return
	}
	kind := ""
	for s := bufio.NewScanner(answer.Body); s.Scan(); {
		if k, ok := strings.CutPrefix(s.Text(), "event: "); ok {
			kind = k
		} else if data, ok := strings.CutPrefix(s.Text(), "data: "); ok {
			_, _ = fmt.Fprintf(trace, "fact %s %s\n", kind, data) // what is lost is not measured
		}
	}
}

// notices writes down what the appliance tells systemd, which isn't there.
func notices() error {
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notify, Net: "unixgram"})
	if err != nil {
		return err
	}
	f, err := os.Create(notes)
	if err != nil {
		return err
	}
	go func() {
		for buf := make([]byte, 4096); ; {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			uptime, _ := os.ReadFile("/proc/uptime") // the kernel always has it
			seconds, _, _ := strings.Cut(string(uptime), " ")
			fmt.Fprintf(f, "%s %q\n", seconds, buf[:n])
		}
	}()
	return nil
}

// flushed sends at once what is written.
type flushed struct {
	w io.Writer
	c *http.ResponseController
}

func (f flushed) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	if err == nil {
		err = f.c.Flush()
	}
	return n, err
}

// appliance passes requests on to the appliance's socket.
func appliance() http.Handler {
	p := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "localhost"})
	p.FlushInterval = -1
	p.Transport = transport()
	return p
}

// transport reaches the appliance's socket under any name.
func transport() http.RoundTripper {
	var d net.Dialer
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return d.DialContext(ctx, "unix", socket)
	}}
}
