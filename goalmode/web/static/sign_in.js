// Signs in with the token that stands behind the # of the address. It is never part of a request's path.
"use strict";
(() => {
  const token = location.hash.slice(1);
  if (!token) return;
  history.replaceState(null, "", location.pathname);
  const form = document.getElementById("sign-in");
  form.elements.token.value = token;
  form.submit();
})();
