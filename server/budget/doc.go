// Package budget shares the server's memory among its clients.
//
// Contract:
//   - A [Budget] has a total. What a request holds of it is counted for its client: the name of its key, or without
//     keys its address. A request has an [Account], which its context carries.
//   - A client that holds nothing may take all that is free. One that holds something may hold up to
//     [limits.ClientShare] times what it leaves free, so that there is always room for others.
//   - A request that finds no room waits, those of the clients with the least first, and after a time gets
//     [runtime.ErrBusy], or [ErrShare] if its own client holds the room.
//   - While somebody waits, requests that hold memory and whose clients neither send nor read are cut.
//   - All types are safe for concurrent use.
package budget
