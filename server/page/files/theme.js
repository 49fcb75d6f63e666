// Sets the theme that was chosen before anything is painted; so it is no module, which would wait for the page.
'use strict';
(function () {
  try {
    const theme = localStorage.getItem('ingot.theme');
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  } catch {
    // Without storage the system's theme holds.
  }
})();
