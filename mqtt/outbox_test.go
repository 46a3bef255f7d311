package mqtt

import (
	"fmt"
	"testing"
)

func TestOutbox(t *testing.T) {
	o := newOutbox()
	state := func(topic, payload string) { o.state(message{topic, payload, true}, false) }
	drain := func() (s string) {
		for {
			m, ok := o.take()
			if !ok {
				return s
			}
			s += m.topic + "=" + m.payload + " "
		}
	}
	expect := func(want string) {
		t.Helper()
		if got := drain(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	// Without a connection only states are remembered.
	state("a", "1")
	state("b", "1")
	if o.send(message{topic: "e"}) {
		t.Error("an event is taken without a connection")
	}
	expect("")
	o.begin([]message{{topic: "config"}}, message{topic: "online"})
	expect("config= a=1 b=1 online= ")
	// Of a state the newest is sent, once, and nothing if it is as it was.
	state("a", "1")
	state("a", "2")
	o.send(message{topic: "e", payload: "x"})
	state("a", "3")
	expect("a=3 e=x ")
	o.state(message{"a", "3", true}, true)
	expect("a=3 ")
	// What is forgotten isn't sent.
	state("a", "4")
	o.forget("a")
	o.again(nil, message{topic: "online"})
	expect("b=1 online= ")
	// Events that wait survive an announcement, but not a loss.
	o.send(message{topic: "e", payload: "y"})
	o.again(nil, message{topic: "online"})
	expect("e=y b=1 online= ")
	o.send(message{topic: "e", payload: "z"})
	state("b", "2")
	o.end()
	expect("")
	if o.drops() != 2 {
		t.Errorf("%d drops", o.drops())
	}
	// Nobody waits when it is full, and states always have room.
	o.begin(nil, message{topic: "online"})
	drain()
	for i := range maxEvents + 10 {
		o.send(message{topic: "e", payload: fmt.Sprint(i)})
		state("b", fmt.Sprint("again ", i))
	}
	if o.drops() != 12 {
		t.Errorf("%d drops", o.drops())
	}
	n := 0
	for m, ok := o.take(); ok; m, ok = o.take() {
		n++
		if m.topic == "b" && m.payload != fmt.Sprint("again ", maxEvents+9) {
			t.Errorf("an old state is sent: %v", m)
		}
	}
	if n != maxEvents+1 {
		t.Errorf("%d were sent", n)
	}
}
