package store_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/dialog"
	"bellbird/store"
)

// Everybody at once, while snapshots are made and chats are sealed; and changes are told one at a time, also by one who
// makes others while he is told.
func TestConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		var telling sync.Mutex
		renames := 0
		w = newWorld(t, func(o *store.Options) {
			o.VaultIdle = -1
			o.After = func(c store.Change) {
				if !telling.TryLock() {
					t.Error("two changes are told at once")
					return
				}
				defer telling.Unlock()
				if c.Kind == store.Renamed {
					renames++
					w.must(w.State("after").Save("renames", renames))
					w.must(w.Clear("private"))
				}
			}
		})
		w.private("private")
		w.must(w.Create("0"))
		var wg sync.WaitGroup
		each := func(f func(i int)) {
			wg.Go(func() {
				for i := range 20 {
					f(i)
				}
			})
		}
		each(func(i int) { w.must(w.Rename(fmt.Sprint(i), fmt.Sprint(i+1))) })
		each(func(i int) { w.must(w.chat("private").Append(say(dialog.User, "x"))) })
		each(func(i int) { w.must(w.Rows("a").Batched().Put("private", "k", raw("1"))) })
		each(func(i int) { w.Rows("a").AllChats("k") })
		each(func(i int) { w.clock.Advance(5 * time.Hour); w.chat("default").Messages() })
		each(func(i int) { w.Private(t.Context(), nil); w.must(w.chat("default").Amend("y")); _, _ = w.Chats() })
		each(func(i int) {
			if i%5 == 0 {
				w.must(w.unseal("private"))
				w.seal("private")
			}
		})
		wg.Wait()
		synctest.Wait()
		if renames != 20 || w.State("after").Get("renames", 0) != 20.0 {
			t.Errorf("%d renames were told", renames)
		}
	})
}
