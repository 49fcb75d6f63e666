// Sets the chosen theme before the first paint. It is not a module, since modules run after the page is parsed.
'use strict';
(function () {
  try {
    const theme = localStorage.getItem('ingot.theme');
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  } catch {
    // Without storage, use the system's theme.
  }
})();
