package wake

import (
	"context"
	"time"

	"bellbird/audio"
)

// A listener is one Listen under way. Run's goroutine decides when it is over; Listen's only hands frames on.
type listener struct {
	from  uint64
	queue chan audio.Frame // holds the longest utterance: Run never waits and never drops. Closed by Run at the end
	left  <-chan struct{}  // closed when nobody listens any more

	endpoint endpoint
	next     uint64

	// Set by Run before it closes the queue.
	voiced  bool
	silence time.Duration
	err     error
}

// Listen collects one utterance. It passes the frames to to, in order and on the caller's goroutine, beginning with
// frame number from or as far back as is remembered, and returns when the endpoint was found: voiced tells whether
// anybody spoke, silence how long it had then been quiet. The rest of a wake word at the beginning isn't speech.
//
// There is one Listen at a time: another one ends the first with ErrSuperseded. It returns at once when ctx is done,
// unless to keeps it.
func (e *Ears) Listen(ctx context.Context, from uint64, to func(audio.Frame)) (voiced bool, silence time.Duration, err error) {
	o := &e.o
	most := audio.Frames(o.MaxUtterance)
	left := make(chan struct{})
	defer close(left)
	l := &listener{
		from:  from,
		queue: make(chan audio.Frame, most),
		left:  left,
		endpoint: endpoint{
			silence:  audio.Frames(o.Silence),
			noSpeech: min(audio.Frames(o.NoSpeech), most),
			most:     most,
		},
	}
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
				return l.voiced, l.silence, l.err
			}
			if ctx.Err() != nil {
				return false, 0, ctx.Err() // select may choose the frame though both are there
			}
			to(f)
		}
	}
}

// listen begins with what the ring remembers.
func (e *Ears) listen(l *listener) {
	n := e.heard.Load()
	l.next = max(l.from, e.oldest())
	if call := e.lastCall; e.called && l.next <= call+1 {
		l.endpoint.tail = int(call-l.next) + 1 + audio.Frames(wordTail)
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
	select {
	case <-l.left:
		e.listener = nil
		return
	default:
	}
	r := e.at(n)
	l.queue <- r.frame // has room
	l.next = n + 1
	if l.endpoint.frame(r.sound) {
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
		close(l.queue)
	}
}
