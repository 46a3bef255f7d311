package worker_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bellbird/hooks"
	"bellbird/plugins/worker"
)

// sandboxed returns a command for this test program in a sandbox, where it does what TestInSandbox knows by the name.
func sandboxed(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append([]string{"-test.run=^TestInSandbox$", "--", name}, args...)...)
	cmd.Env = []string{"SECRET=1"}
	cmd.Stderr = os.Stderr
	return cmd
}

// TestInSandbox is the child's part of the other tests, and does nothing without them.
func TestInSandbox(t *testing.T) {
	if flag.NArg() == 0 {
		t.Skip("the other tests run this in a process of its own")
	}
	if flag.Arg(0) == "parent" { // of a worker that spins, which gets our descriptors
		cmd := sandboxed("spin")
		cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
	}
	_, again := os.LookupEnv("BELLBIRD_SANDBOX")
	if flag.Arg(0) == "outside" || flag.Arg(0) == "between" && again {
		if err := json.NewEncoder(os.Stdout).Encode(attempt(flag.Args()[1:])); err != nil {
			t.Fatal(err)
		}
		os.Exit(0)
	}
	memory := int64(worker.Memory)
	if underRace { // the race detector's own memory is far more than a worker may have
		memory = 0
	}
	parts, err := worker.Sandbox(memory)
	if err == nil {
		err = act(flag.Arg(0), flag.Args()[1:], parts)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func act(name string, args []string, parts []worker.Part) error {
	switch name {
	case "parts":
		return json.NewEncoder(os.Stdout).Encode(parts)
	case "attempts":
		return json.NewEncoder(os.Stdout).Encode(attempt(args))
	case "work":
		return work()
	case "wait":
		fmt.Println("ready")
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	case "spin":
		fmt.Println("ready")
		for {
			runtime.Gosched()
		}
	case "serve":
		return worker.Serve(context.Background(), os.Stdin, os.Stdout, slog.New(slog.DiscardHandler))
	}
	return fmt.Errorf("there is no %q", name)
}

// work does what a worker does all day.
func work() error {
	if env := os.Environ(); len(env) != 0 {
		return fmt.Errorf("the environment is %q", env)
	}
	var wg sync.WaitGroup
	sums := make(chan int, 100)
	for i := range cap(sums) {
		wg.Go(func() {
			if i%10 == 0 { // make threads
				runtime.LockOSThread()
			}
			b := make([]byte, 1<<17)
			for j := range b {
				b[j] = 1
			}
			timer := time.NewTimer(time.Millisecond)
			<-timer.C
			sum := 0
			for _, x := range b {
				sum += int(x)
			}
			sums <- sum
		})
	}
	wg.Wait()
	runtime.GC()
	for range cap(sums) {
		if sum := <-sums; sum != 1<<17 {
			return fmt.Errorf("the sum is %d", sum)
		}
	}
	if _, err := time.LoadLocation("Europe/Berlin"); err != nil {
		return err
	}
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		return err
	}
	_, zone := time.Now().Zone()
	_, err = fmt.Fprintf(os.Stdout, "%d %s", zone, line)
	return err
}

// parts are what is in force here. A kernel may lack parts, and the emulator of another architecture most of them.
func parts(t *testing.T) (all []worker.Part, inForce func(name string) bool) {
	t.Helper()
	cmd := sandboxed("parts")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return all, func(name string) bool { return slices.Contains(all, worker.Part{Name: name}) }
}

func TestSandboxParts(t *testing.T) {
	all, _ := parts(t)
	if len(all) != 10 {
		t.Errorf("parts: %v", all)
	}
	for _, p := range all {
		t.Log(p)
	}
}

// try has a child attempt what is named, or everything, and returns what succeeded.
func try(t *testing.T, where string, names ...string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("secret"), 0o666); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	args := append([]string{file, strconv.Itoa(os.Getpid()), l.Addr().String()}, names...)
	out, err := sandboxed(where, args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	var succeeded []string
	if err := json.Unmarshal(out, &succeeded); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return succeeded
}

func TestSandboxRefuses(t *testing.T) {
	if _, inForce := parts(t); !inForce("call filter") {
		t.Skip("this kernel has no filter of system calls")
	}
	if succeeded := try(t, "attempts"); len(succeeded) > 0 {
		t.Errorf("these succeeded: %q", succeeded)
	}
}

// Landlock alone, before there is a filter.
func TestSandboxRules(t *testing.T) {
	_, inForce := parts(t)
	for part, names := range map[string][]string{
		"file rules": {
			"read a file", "read a device", "list a directory", "write to a file", "create a file", "remove a file",
			"make a directory", "start a program", "become a program",
		},
		"TCP rules":   {"connect", "listen"},
		"scope rules": {"kill its parent", "kill a thread of its parent"},
	} {
		if !inForce(part) {
			t.Logf("this kernel has no %s", part)
			continue
		}
		if succeeded := try(t, "between", names...); len(succeeded) > 0 {
			t.Errorf("%s: these succeeded: %q", part, succeeded)
		}
	}
}

// What is refused in the sandbox does succeed outside of it, or the attempts would prove nothing. Here are those that do
// no harm and that a container allows.
func TestAttemptsSucceedOutside(t *testing.T) {
	names := []string{
		"connect", "create a file", "fork", "get code of its own", "kill a thread of its parent", "kill its group", "kill its parent",
		"list a directory", "listen", "make a directory", "make a file in memory", "make a pair", "make code of data",
		"read a device", "read a file", "read its program", "see a file", "send UDP", "start a program", "write to a file",
	}
	if succeeded := try(t, "outside", names...); !slices.Equal(succeeded, names) {
		t.Errorf("only these succeeded: %q", succeeded)
	}
}

func TestSandboxWorks(t *testing.T) {
	cmd := sandboxed("work")
	cmd.Stdin = strings.NewReader("a line\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	_, zone := time.Now().Zone()
	if want := fmt.Sprintf("%d a line\n", zone); string(out) != want {
		t.Errorf("it wrote %q, want %q", out, want)
	}
}

// The kernel's own account of a process in the sandbox, and of all its threads.
func TestSandboxStatus(t *testing.T) {
	_, inForce := parts(t)
	secret, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	cmd := sandboxed("wait")
	cmd.ExtraFiles = []*os.File{secret}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	dir := fmt.Sprintf("/proc/%d/", cmd.Process.Pid)
	tasks, err := filepath.Glob(dir + "task/*/status")
	if err != nil || len(tasks) == 0 {
		t.Fatalf("tasks %v, %v", tasks, err)
	}
	want := map[string]string{}
	if inForce("no privileges") {
		want["NoNewPrivs"], want["CapPrm"], want["CapEff"] = "1", "0000000000000000", "0000000000000000"
	}
	if inForce("call filter") {
		want["Seccomp"] = "2"
	}
	for _, task := range tasks {
		status, err := os.ReadFile(task)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the thread has ended
		}
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(status)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			if w, ok := want[key]; ok && strings.TrimSpace(value) != w {
				t.Errorf("%s: %s is %q, want %q", task, key, value, w)
			}
		}
	}
	if inForce("low priority") {
		nice, err := unix.Getpriority(unix.PRIO_PROCESS, cmd.Process.Pid)
		if err != nil || 20-nice != 10 { // the system call returns 20 less the niceness
			t.Errorf("the niceness is %d, %v", 20-nice, err)
		}
		if adj, err := os.ReadFile(dir + "oom_score_adj"); err != nil || strings.TrimSpace(string(adj)) != "1000" {
			t.Errorf("oom_score_adj is %q, %v", adj, err)
		}
	}
	fds, err := os.ReadDir(dir + "fd")
	if err != nil {
		t.Skip("another user's descriptors can't be seen: ", err) // it is not dumpable, so that only root sees them
	}
	for _, fd := range fds {
		if n, err := strconv.Atoi(fd.Name()); err != nil || n < 3 {
			continue
		}
		if target, _ := os.Readlink(dir + "fd/" + fd.Name()); strings.HasPrefix(target, "/") {
			t.Errorf("descriptor %s is %s", fd.Name(), target)
		}
	}
}

// A worker that spins ends with the process that started it.
func TestSandboxEndsWithParent(t *testing.T) {
	if _, inForce := parts(t); !inForce("end with parent") {
		t.Skip("this kernel doesn't do it")
	}
	cmd := sandboxed("parent")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	if line, err := r.ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, r); err != nil { // until nobody has the other end any more
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
}

func TestSandboxServes(t *testing.T) {
	h := worker.New(worker.Options{Command: func() *exec.Cmd { return sandboxed("serve") }})
	t.Cleanup(h.Close)
	f := function(t, load(t, h, "p", `
def handle(event):
    state.save("seen", True)
    event.input = re.sub("b+", "c", event.input) + json.encode([random.randint(1, 1), time.now().year > 2000])
`), "pre_chat")
	e := &hooks.Event{Input: "abba"}
	if err := f(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if e.Input != "aca[1,true]" {
		t.Errorf("input %q", e.Input)
	}
}

// How long a worker takes from being started to being ready, with and without the sandbox.
func BenchmarkStart(b *testing.B) {
	b.Run("sandbox", func(b *testing.B) {
		for b.Loop() {
			if out, err := sandboxed("parts").Output(); err != nil {
				b.Fatal(string(out), err)
			}
		}
	})
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = []string{"BELLBIRD_TEST_WORKER=1"}
			if out, err := cmd.Output(); err != nil {
				b.Fatal(string(out), err)
			}
		}
	})
}
