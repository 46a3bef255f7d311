// Package device boots a whole arm64 machine in software, without KVM, in which the cross-built appliance meets a real
// kernel: ALSA, a GPIO chip, an SPI device and a network. From outside its buttons are pressed, and the bytes that its LED
// ring receives are read off the wires. It is for tests, and needs qemu and what fetch.sh has fetched.
//
// Its processor executes one instruction in each nanosecond of its own time, whatever the host can do, so that figures that
// are measured in it can be repeated. It is not the processor of any board.
package device

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Options are what a device needs.
type Options struct {
	Dir   string // what fetch.sh made
	Share string // a directory that is /share in the device, and has the agent
	Data  string // a directory that is /data in the device; empty: none
	// Work is for files of this run: its console, and the sockets.
	Work string
	// High are the lines of the GPIO chip that are high from the start, as resistors to 3.3 V make them.
	High []int
	// Hurry lets the device's clock jump ahead whenever the device has nothing to do, instead of going along with the host's.
	// It then does what it does on a quick and quiet host, however slow and busy the host is, but nothing that the host does
	// comes at a known time of the device.
	Hurry bool
	// Modules are loaded at the start, in this order, such as "snd-aloop".
	Modules []string
}

// A Machine is a running virtual device. Its methods may be called by any goroutine.
type Machine struct {
	o      Options
	cmd    *exec.Cmd
	ended  chan struct{} // closed when qemu has ended
	err    error         // of qemu, after that
	agent  string        // its URL
	client *http.Client
	lines  *lines
	Wire   *Wire // what the ring receives
}

// kernelLine is the command line of the kernel. A kernel that panics ends the machine.
const kernelLine = "console=ttyAMA0 panic=-1 loglevel=4"

// Start boots a device, and waits until its agent answers. It runs until Kill or PowerOff.
func Start(ctx context.Context, o Options) (*Machine, error) {
	tree, err := deviceTree(ctx, o.Work)
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	console, err := os.Create(filepath.Join(o.Work, "console.log"))
	if err != nil {
		return nil, err
	}
	defer console.Close()
	qtest, qmp := filepath.Join(o.Work, "qtest"), filepath.Join(o.Work, "qmp")
	args := append(machineArgs(o.Hurry),
		"-no-reboot", "-display", "none", "-monitor", "none", "-serial", "stdio", "-nodefaults",
		"-kernel", filepath.Join(o.Dir, "kernel"), "-initrd", filepath.Join(o.Dir, "initrd"), "-dtb", tree,
		"-append", kernelLine+" device.modules="+strings.Join(o.Modules, ","),
		"-netdev", fmt.Sprintf("user,id=net,hostfwd=tcp:127.0.0.1:%d-:7000", port), "-device", "virtio-net-pci,netdev=net,romfile=",
		"-qtest", "unix:"+qtest+",server=on,wait=off", "-qtest-log", "none", "-qmp", "unix:"+qmp+",server=on,wait=off",
	)
	for _, d := range [][2]string{{"root", filepath.Join(o.Dir, "root")}, {"share", o.Share}, {"data", o.Data}} {
		if d[1] != "" {
			args = append(args, "-virtfs", fmt.Sprintf("local,path=%s,mount_tag=%s,security_model=none,readonly=on,multidevs=remap", d[1], d[0]))
		}
	}
	m := &Machine{
		o: o, ended: make(chan struct{}), agent: fmt.Sprintf("http://127.0.0.1:%d", port), client: &http.Client{Transport: &http.Transport{}},
		cmd: exec.Command(args[0], args[1:]...), Wire: newWire(),
	}
	m.cmd.Stdout, m.cmd.Stderr = console, console
	m.cmd.SysProcAttr = dieWithUs()
	if err := m.cmd.Start(); err != nil {
		return nil, fmt.Errorf("qemu: %w: run \"make test-device\", which installs it", err)
	}
	go func() {
		m.err = m.cmd.Wait()
		close(m.ended)
	}()
	if err := m.attach(ctx, qtest, qmp); err != nil {
		m.Kill()
		return nil, fmt.Errorf("%w\n%s", err, m.Console())
	}
	return m, nil
}

// attach connects to the lines before the kernel uses them, and then waits for the agent.
func (m *Machine) attach(ctx context.Context, qtest, qmp string) error {
	chip, err := findChip(ctx, m, qmp)
	if err != nil {
		return err
	}
	if m.lines, err = openLines(ctx, m, qtest, chip, m.Wire.level); err != nil {
		return err
	}
	for _, line := range m.o.High {
		if err := m.SetLine(line, true); err != nil {
			return err
		}
	}
	return m.retry(ctx, func() error {
		_, err := m.Run(ctx, "true")
		return err
	})
}

// retry calls f until it succeeds, the machine has ended or ctx is done.
func (m *Machine) retry(ctx context.Context, f func() error) error {
	for {
		err := f()
		if err == nil {
			return nil
		}
		t := time.NewTimer(50 * time.Millisecond)
		select {
		case <-t.C:
		case <-m.ended:
			t.Stop()
			return fmt.Errorf("the machine has ended: %w", errors.Join(m.err, err))
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("the machine does not answer: %w", errors.Join(ctx.Err(), err))
		}
	}
}

// Console is what the machine has printed on its serial port.
func (m *Machine) Console() string {
	text, _ := os.ReadFile(filepath.Join(m.o.Work, "console.log")) // what can't be read is not there
	return string(text)
}

// A Result is what a script printed, and how it ended.
type Result struct {
	Output string
	Code   int // -1: it was killed
}

// Run runs a script in the device's shell and waits for its end. That the script fails is no error.
func (m *Machine) Run(ctx context.Context, script string) (Result, error) {
	var out bytes.Buffer
	code, err := m.Stream(ctx, script, &out)
	return Result{out.String(), code}, err
}

// Stream is Run, with what the script prints written to w as it comes. When ctx is done the script is killed.
func (m *Machine) Stream(ctx context.Context, script string, w io.Writer) (code int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.agent+"/run", strings.NewReader(script))
	if err != nil {
		return 0, err
	}
	answer, err := m.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(w, answer.Body); err != nil {
		return 0, err
	}
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the agent: %s", answer.Status)
	}
	return strconv.Atoi(answer.Trailer.Get("Exit"))
}

// Put writes a file in the device.
func (m *Machine) Put(ctx context.Context, path string, content []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, m.agent+"/file?path="+url.QueryEscape(path), bytes.NewReader(content))
	if err != nil {
		return err
	}
	answer, err := m.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		return fmt.Errorf("%s: %s", path, bytes.TrimSpace(text))
	}
	return nil
}

// API is the address under which the host finds what the appliance serves on its socket, such as "/api/events".
func (m *Machine) API() string { return m.agent }

// SetLine sets the level that a line of the GPIO chip has from outside.
func (m *Machine) SetLine(line int, high bool) error { return m.lines.set(line, high) }

// PowerOff shuts the machine down, and waits for its end.
func (m *Machine) PowerOff(ctx context.Context) error {
	if _, err := m.Run(ctx, "sync; poweroff -f"); err == nil {
		return errors.New("the machine goes on after poweroff")
	}
	select {
	case <-m.ended:
	case <-ctx.Done():
		m.Kill()
		return fmt.Errorf("poweroff: %w", ctx.Err())
	}
	m.Kill()
	return m.err
}

// Kill cuts the machine's power, and waits for its end. It may be called more than once.
func (m *Machine) Kill() {
	_ = m.cmd.Process.Kill() // it may have ended
	<-m.ended
	if m.lines != nil {
		m.lines.close()
	}
	m.client.CloseIdleConnections()
}

// Ended is closed when the machine has ended.
func (m *Machine) Ended() <-chan struct{} { return m.ended }

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// machineArgs are the machine itself.
func machineArgs(hurry bool) []string {
	sleep := "on"
	if hurry {
		sleep = "off"
	}
	return []string{"qemu-system-aarch64", "-M", "virt", "-cpu", "cortex-a72", "-smp", "1", "-icount", "shift=0,sleep=" + sleep, "-m", "1024"}
}

// Lines of the GPIO chip. Line 3 is the machine's power button.
const (
	RingClock = 0 // GPIO11
	RingData  = 1 // GPIO10
	Button    = 4 // GPIO17
	Switch    = 5 // GPIO22
	Second    = 6 // GPIO27: another button
	RingPower = 7 // GPIO5
)

// wiring is added to the machine's device tree: the ring on an SPI bus that is made of two lines, and names for the lines,
// as on a Raspberry Pi.
const wiring = `
&{/pl061@9030000} {
	gpio-line-names = "GPIO11", "GPIO10", "", "", "GPIO17", "GPIO22", "GPIO27", "GPIO5";
};
/ {
	spi {
		compatible = "spi-gpio";
		#address-cells = <1>;
		#size-cells = <0>;
		sck-gpios = <&{/pl061@9030000} 0 0>;
		mosi-gpios = <&{/pl061@9030000} 1 0>;
		num-chipselects = <0>;
		ring@0 {
			compatible = "rohm,dh2228fv";
			reg = <0>;
			spi-max-frequency = <4000000>;
		};
	};
};
`

// deviceTree makes the machine's device tree in dir, and returns its path.
func deviceTree(ctx context.Context, dir string) (string, error) {
	plain, tree := filepath.Join(dir, "plain.dtb"), filepath.Join(dir, "device.dtb")
	args := machineArgs(false)
	args[2] += ",dumpdtb=" + plain
	args = append(args, "-nodefaults", "-display", "none")
	if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("qemu's device tree: %w: %s (run \"make test-device\", which installs it)", err, out)
	}
	source, err := exec.CommandContext(ctx, "dtc", "-q", "-I", "dtb", "-O", "dts", plain).Output()
	if err != nil {
		return "", fmt.Errorf("dtc: %w", err)
	}
	dtc := exec.CommandContext(ctx, "dtc", "-q", "-I", "dts", "-O", "dtb", "-o", tree, "-")
	dtc.Stdin = io.MultiReader(bytes.NewReader(source), strings.NewReader(wiring))
	if out, err := dtc.CombinedOutput(); err != nil {
		return "", fmt.Errorf("dtc: %w: %s", err, out)
	}
	return tree, nil
}
