package clock

import (
	"testing"
	"testing/fstest"
)

func TestKnown(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	tests := []struct {
		name        string
		files       fstest.MapFS
		disciplined bool
		want        bool
	}{
		{"nothing", nil, false, false},
		{"timesyncd", fstest.MapFS{"run/systemd/timesync/synchronized": file("")}, false, true},
		{"another service", nil, true, true},
		{"battery", fstest.MapFS{"sys/class/rtc/rtc0/hctosys": file("1\n"), "sys/class/rtc/rtc0/since_epoch": file("1893456000\n")}, false, true},
		{"no battery", fstest.MapFS{"sys/class/rtc/rtc0/hctosys": file("1\n"), "sys/class/rtc/rtc0/since_epoch": file("35\n")}, false, false},
		{"not used", fstest.MapFS{"sys/class/rtc/rtc0/hctosys": file("0\n"), "sys/class/rtc/rtc0/since_epoch": file("1893456000\n")}, false, false},
		{"unreadable", fstest.MapFS{"sys/class/rtc/rtc0/hctosys": file("1"), "sys/class/rtc/rtc0/since_epoch": file("x")}, false, false},
		{"half there", fstest.MapFS{"sys/class/rtc/rtc0/hctosys": file("1")}, false, false},
	}
	for _, test := range tests {
		if got := known(test.files, func() bool { return test.disciplined }); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
	Known() // on this machine, whatever it is
}
