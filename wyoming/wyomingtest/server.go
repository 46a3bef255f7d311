// Package wyomingtest is a Wyoming service for tests, on the loopback: a recogniser and a voice that do as they are told,
// also what no service should. What it heard and was asked can be looked at.
package wyomingtest

import (
	"encoding/binary"
	"net"
	"sync"

	"bellbird/audio"
	"bellbird/wyoming"
)

// A Service says what the server has and does. The zero value understands nothing and speaks silence.
type Service struct {
	Info wyoming.Info // that it answers describe with

	Text     string   // what it understands
	Bits     []string // what it tells of it before, if any
	NoWhole  bool     // it leaves out the transcript itself
	AtOnce   bool     // it answers before the sound has ended, and listens no more
	Samples  []int16  // what it says, the channels interleaved; any text is the same to it
	Rate     audio.Rate
	Channels int
	Chunk    int // samples of a chunk; 0: 1024
	Fault    *wyoming.Fault

	// Behave is asked before each event that the server sends. Nil: it sends it.
	Behave func(c *Conn, e wyoming.Event) error
}

// A Server is a service that runs.
type Server struct {
	Address string // of it, for an Options

	service  Service
	listener net.Listener
	wg       sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	asked []wyoming.Event
}

// Start starts a server. It must be closed.
func Start(s Service) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if s.Rate == 0 {
		s.Rate = audio.SampleRate
	}
	if s.Channels == 0 {
		s.Channels = 1
	}
	if s.Chunk == 0 {
		s.Chunk = 1024
	}
	srv := &Server{Address: "tcp://" + l.Addr().String(), service: s, listener: l, conns: make(map[net.Conn]bool)}
	srv.wg.Go(srv.accept)
	return srv, nil
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[conn] = true
		s.mu.Unlock()
		s.wg.Go(func() {
			c := &Conn{Conn: conn, server: s}
			c.serve()
			conn.Close()
			s.mu.Lock()
			delete(s.conns, conn)
			s.mu.Unlock()
		})
	}
}

// Close ends the server and all its connections, and waits for them.
func (s *Server) Close() {
	s.listener.Close()
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// Asked are the events that it got, but for the sound.
func (s *Server) Asked() []wyoming.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]wyoming.Event(nil), s.asked...)
}

// Heard is the sound that it got, of all connections.
func (s *Server) Heard() []int16 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []int16
	for _, e := range s.asked {
		for b := e.Payload; len(b) > 1; b = b[2:] {
			out = append(out, int16(binary.LittleEndian.Uint16(b)))
		}
	}
	return out
}

// A Conn is the server's side of a connection.
type Conn struct {
	net.Conn
	server *Server
}

// send sends an event, and reports whether it may go on.
func (c *Conn) send(e wyoming.Event) bool {
	if b := c.server.service.Behave; b != nil && b(c, e) != nil {
		return false
	}
	return wyoming.Write(c, e) == nil
}

func (c *Conn) serve() {
	s := &c.server.service
	r := wyoming.NewReader(c)
	streaming, answered := false, false
	for {
		e, err := r.Read()
		if err != nil {
			return
		}
		c.server.mu.Lock()
		c.server.asked = append(c.server.asked, e)
		c.server.mu.Unlock()
		more := true
		switch e.Type {
		case wyoming.Describe:
			more = c.send(wyoming.NewEvent(wyoming.InfoType, s.Info))
		case wyoming.AudioChunk:
			if s.AtOnce && !answered {
				more, answered = c.transcript(), true
			}
		case wyoming.AudioStop:
			more = answered || c.transcript()
			more = more && !answered
		case wyoming.SynthesizeStart:
			streaming = true
		case wyoming.Synthesize:
			more = streaming || c.speak()
		case wyoming.SynthesizeStop:
			streaming = false
			more = c.speak() && c.send(wyoming.Event{Type: wyoming.SynthesizeStopped})
		}
		if !more {
			return
		}
	}
}

func (c *Conn) transcript() bool {
	s := &c.server.service
	if s.Fault != nil {
		return c.send(wyoming.NewEvent(wyoming.Failure, s.Fault))
	}
	if len(s.Bits) > 0 {
		if !c.send(wyoming.Event{Type: wyoming.TranscriptStart}) {
			return false
		}
		for _, b := range s.Bits {
			if !c.send(wyoming.NewEvent(wyoming.TranscriptChunk, wyoming.Text{Text: b})) {
				return false
			}
		}
	}
	if !s.NoWhole && !c.send(wyoming.NewEvent(wyoming.Transcript, wyoming.Text{Text: s.Text})) {
		return false
	}
	return len(s.Bits) == 0 || c.send(wyoming.Event{Type: wyoming.TranscriptStop})
}

func (c *Conn) speak() bool {
	s := &c.server.service
	if s.Fault != nil {
		return c.send(wyoming.NewEvent(wyoming.Failure, s.Fault))
	}
	format := wyoming.Format{Rate: s.Rate, Width: 2, Channels: s.Channels}
	if !c.send(wyoming.NewEvent(wyoming.AudioStart, format)) {
		return false
	}
	for rest := s.Samples; len(rest) > 0; {
		n := min(s.Chunk, len(rest))
		e := wyoming.NewEvent(wyoming.AudioChunk, format)
		for _, v := range rest[:n] {
			e.Payload = binary.LittleEndian.AppendUint16(e.Payload, uint16(v))
		}
		if rest = rest[n:]; !c.send(e) {
			return false
		}
	}
	return c.send(wyoming.Event{Type: wyoming.AudioStop})
}
