// Browsers start no workers on pages that are opened from disk. There, an iframe does the work of one, so that search
// works without a server. The name of this file tells the site generator not to load such a script from elsewhere.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = `<script>
        postMessage = (data) => parent.postMessage(data, "*");
      </script><body><script src="${url}"></script></body>`;
      this.ready = new Promise((loaded) => frame.addEventListener("load", loaded));
      this.frame = frame;
      window.addEventListener("message", (event) => {
        if (event.source !== frame.contentWindow) return;
        event.stopImmediatePropagation();
        const message = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(message);
        this.onmessage?.(message);
      });
      document.documentElement.append(frame);
    }
    postMessage(data) {
      const message = new MessageEvent("message", { data });
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(message));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
