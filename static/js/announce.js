// One live region for the page: short sentences for people who do not see the picture change.

export function announce(sentence) {
  const region = document.getElementById("announcer");
  if (region && sentence) region.textContent = sentence;
}

export function pageNonce() {
  return document.querySelector("script[nonce]")?.nonce ?? "";
}
