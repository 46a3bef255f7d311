package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"bellbird/mqtt"
)

// What Linux tells of the machine, for Home Assistant.

// machineDiagnostics reads what Linux tells of the machine, below root; what isn't there at the start isn't shown.
func machineDiagnostics(root, state string) mqtt.Diagnostics {
	path := func(elem ...string) string { return filepath.Join(append([]string{root}, elem...)...) }
	number := func(get func() (float64, error)) func() (float64, error) {
		if _, err := get(); err != nil {
			return nil
		}
		return get
	}
	d := mqtt.Diagnostics{
		Temperature: number(func() (float64, error) {
			v, err := field(path("sys/class/thermal/thermal_zone0/temp"), "", 0)
			return v / 1000, err
		}),
		Load: number(func() (float64, error) { return field(path("proc/loadavg"), "", 0) }),
		Memory: number(func() (float64, error) {
			total, err := field(path("proc/meminfo"), "MemTotal:", 1)
			if err != nil || total == 0 {
				return 0, errors.Join(err, errors.New("no memory"))
			}
			free, err := field(path("proc/meminfo"), "MemAvailable:", 1)
			return 100 * (total - free) / total, err
		}),
		Signal:  number(func() (float64, error) { return wirelessLevel(path("proc/net/wireless")) }),
		Address: address,
	}
	if state != "" {
		d.Free = number(func() (float64, error) {
			var s syscall.Statfs_t
			if err := syscall.Statfs(state, &s); err != nil {
				return 0, err
			}
			return float64(s.Bavail) * float64(s.Bsize) / (1 << 20), nil
		})
	}
	if _, err := field(path("proc/stat"), "btime", 1); err == nil {
		d.Started = func() (time.Time, error) {
			s, err := field(path("proc/stat"), "btime", 1)
			// It is computed from the clock each time, and may differ by a second.
			return time.Unix(int64(s), 0).UTC().Round(time.Minute), err
		}
	}
	return d
}

// field is a number in a file, in the first line that begins with a word, or in the first of all if that is empty.
func field(path, begin string, index int) (float64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) > index && (begin == "" || fields[0] == begin) {
			return strconv.ParseFloat(fields[index], 64)
		}
	}
	return 0, fmt.Errorf("%s: no %s", path, begin)
}

// wirelessLevel is the signal of the first wireless interface, in dBm.
func wirelessLevel(path string) (float64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		// wlan0: 0000   49.  -61.  -256 …
		if fields := strings.Fields(line); len(fields) > 3 && strings.HasSuffix(fields[0], ":") {
			return strconv.ParseFloat(strings.TrimSuffix(fields[3], "."), 64)
		}
	}
	return 0, fmt.Errorf("%s: no wireless interface", path)
}

// address is the first by which others can reach this machine.
func address() (string, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return n.IP.String(), nil
		}
	}
	return "", errors.New("no address")
}

// machineModel is what the machine calls itself; "" if it doesn't.
func machineModel(root string) string {
	text, err := os.ReadFile(filepath.Join(root, "sys/firmware/devicetree/base/model"))
	if err != nil || len(text) > 200 {
		return ""
	}
	return strings.TrimRight(string(text), "\x00\n")
}
