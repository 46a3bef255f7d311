package wake

import (
	"context"
	"time"

	"bellbird/audio"
)

// A listener is one Listen under way. Run's goroutine decides when it is over; Listen's only hands frames on.
type listener struct {
	from  uint64
	queue chan queued     // holds the longest utterance: Run never waits and never drops. Closed by Run at the end
	left  <-chan struct{} // closed when nobody listens any more

	endpoint endpoint
	begun    uint64 // the first frame that was judged
	next     uint64 // that will be
	sent     uint64 // the next that is handed on; from when somebody spoke

	// Set by Run before it closes the queue. closed ends the work of closing it.
	closed  func()
	voiced  bool
	silence time.Duration
	err     error
}

// queued is a frame on its way to a listener. done ends the work of bringing it there.
type queued struct {
	frame audio.Frame
	done  func()
}

// Listen collects one utterance. It passes the frames to to, in order and on the caller's goroutine, beginning with
// frame number from or as far back as is remembered, but without what was quiet before somebody spoke. It returns when the
// endpoint was found: voiced tells whether anybody spoke, silence how long it had then been quiet. The rest of a wake word
// at the beginning isn't speech. It waits so long for somebody to speak; 0: as long as Options.NoSpeech.
//
// There is one Listen at a time: another one ends the first with ErrSuperseded. It returns at once when ctx is done,
// unless to keeps it.
func (e *Ears) Listen(ctx context.Context, from uint64, wait time.Duration, to func(audio.Frame)) (voiced bool, silence time.Duration, err error) {
	left := make(chan struct{})
	endpoint := e.newEndpoint(wait)
	l := &listener{
		from:     from,
		queue:    make(chan queued, endpoint.most),
		left:     left,
		endpoint: endpoint,
	}
	defer func() {
		close(left)
		l.drain()
	}()
	select {
	case e.begin <- l:
	case <-e.stopped:
		return false, 0, ErrStopped
	case <-ctx.Done():
		return false, 0, ctx.Err()
	}
	for {
		select {
		case <-ctx.Done():
			return false, 0, ctx.Err()
		case f, ok := <-l.queue:
			if !ok {
				l.closed()
				return l.voiced, l.silence, l.err
			}
			if ctx.Err() == nil { // select may choose the frame though both are there
				to(f.frame)
			}
			f.done()
		}
	}
}

// newEndpoint is one with the limits of the options, or one that waits so long for speech.
func (e *Ears) newEndpoint(wait time.Duration) endpoint {
	p := endpoint{silence: audio.Frames(e.o.Silence), most: audio.Frames(e.o.MaxUtterance)}
	if wait > 0 {
		p.noSpeech = audio.Frames(min(wait, mostTime))
		p.most += p.noSpeech // there must be time left for what is said at last
	} else {
		p.noSpeech = min(audio.Frames(e.o.NoSpeech), p.most)
	}
	return p
}

// drain ends the work of what nobody will take out of the queue any more.
func (l *listener) drain() {
	for {
		select {
		case f, ok := <-l.queue:
			if !ok {
				l.closed()
				return
			}
			f.done()
		default:
			return
		}
	}
}

// abandoned reports whether Listen has returned.
func (l *listener) abandoned() bool {
	select {
	case <-l.left:
		return true
	default:
		return false
	}
}

// listen begins with what the ring remembers.
func (e *Ears) listen(l *listener) {
	n := e.heard.Load()
	l.begun = max(l.from, e.oldest())
	l.next = l.begun
	if call := e.call.frame; e.call.was && l.next <= call+1 {
		l.endpoint.tail = int(call-l.next) + 1 + e.tail
	}
	e.listener = l
	for i := l.next; i < n && e.listener != nil; i++ {
		e.pass(i)
	}
}

// pass gives frame n to the listener, and finds out whether its utterance is over.
func (e *Ears) pass(n uint64) {
	l := e.listener
	if l == nil || n < l.next {
		return
	}
	if l.abandoned() {
		e.end(nil)
		return
	}
	l.next = n + 1
	spoke := l.endpoint.voiced
	over := l.endpoint.frame(e.at(n).sound)
	if l.endpoint.voiced {
		if !spoke {
			l.sent = max(l.begun+uint64(l.endpoint.first()), e.oldest())
		}
		for ; l.sent <= n; l.sent++ {
			l.queue <- queued{e.at(l.sent).frame, e.o.Work()} // has room
		}
		if l.abandoned() {
			l.drain() // it may have done so just before
		}
	}
	if l.endpoint.voiced && l.endpoint.quiet == pauseFrames {
		e.o.OnPause()
	}
	if over {
		l.voiced = l.endpoint.voiced
		l.silence = time.Duration(l.endpoint.quiet) * audio.FrameDuration
		e.end(nil)
	}
}

// end is the end of the listener, if there is one.
func (e *Ears) end(err error) {
	if l := e.listener; l != nil {
		e.listener = nil
		l.err = err
		l.closed = e.o.Work()
		close(l.queue)
		if l.abandoned() {
			l.drain()
		}
	}
}
