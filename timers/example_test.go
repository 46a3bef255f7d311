package timers_test

import (
	"fmt"
	"time"

	"bellbird/clock"
	"bellbird/event"
	"bellbird/timers"
)

func ExampleKeeper_SetAlarm() {
	evening := time.Date(2030, 1, 7, 22, 0, 0, 0, time.UTC)
	k := timers.New(timers.Options{
		Clock: clock.NewVirtual(evening), Bus: new(event.Bus), Zone: func() *time.Location { return time.UTC },
	})
	a, err := k.SetAlarm("school", timers.AlarmTime{Hour: 7, EitherHalf: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(a.Name, a.Next.Format("Monday 3:04 PM"))
	// Output: school Tuesday 7:00 AM
}
